package search

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// nodeProducts has products of a network's converged trajectories at the nodes of a fine grid.
type nodeProducts struct {
	sigma    []float64 // [m + 1], falling
	products []float64 // [2m + 1]², as sampler.Products has them
	variance float64   // mean square of the samples' values
}

// nodes returns n + 1 nodes among multiples of every, between which n steps by least squares have the least error,
//
//	Σ_i  v/(v + σ_j²) min_w E|x_j − w_0 x_i − w_1 D_i − w_2 D_h|²,    h → i → j.
//
// Each step begins on the trajectory, and v/(v + σ²) is the part of its error that remains at the end. first returns
// the error of a start at a node, which is added, or infinity. It returns nil if there are too few nodes.
func (t *nodeProducts) nodes(n, every int, first func(node int) float64) []int {
	m := len(t.sigma) - 1
	if n*every > m {
		return nil
	}
	type state struct {
		cost float64
		from int // h
	}
	best := make([][][]state, n+1) // by steps, i and j
	for s := range best {
		best[s] = make([][]state, m+1)
		for i := range best[s] {
			best[s][i] = make([]state, m+1)
			for j := range best[s][i] {
				best[s][i][j] = state{cost: math.Inf(1)}
			}
		}
	}
	errs := map[[3]int]float64{}
	stepError := func(h, i, j int) float64 {
		key := [3]int{h, i, j}
		v, ok := errs[key]
		if !ok {
			v = t.stepError(h, i, j)
			errs[key] = v
		}
		return v
	}
	for i := 0; i < m; i += every {
		for j := i + every; j <= m && !math.IsInf(first(i), 1); j += every {
			best[1][i][j] = state{first(i) + stepError(-1, i, j), -1}
		}
	}
	for s := 2; s <= n; s++ {
		for i := every; i <= m; i += every {
			for h := 0; h < i; h += every {
				if math.IsInf(best[s-1][h][i].cost, 1) {
					continue
				}
				for j := i + every; j <= m; j += every {
					if cost := best[s-1][h][i].cost + stepError(h, i, j); cost < best[s][i][j].cost {
						best[s][i][j] = state{cost, h}
					}
				}
			}
		}
	}
	least, last := math.Inf(1), -1
	for i := range best[n] {
		if c := best[n][i][m].cost; c < least {
			least, last = c, i
		}
	}
	if last < 0 {
		return nil
	}
	out := make([]int, n+1)
	out[n], out[n-1] = m, last
	for s := n; s > 1; s-- {
		out[s-2] = best[s][out[s-1]][out[s]].from
	}
	return out
}

// stepError returns the weighted error of a step from node i to node j, with the evaluation at node h, or −1 for none.
func (t *nodeProducts) stepError(h, i, j int) float64 {
	m := len(t.sigma) - 1
	columns := []int{i, m + 1 + i}
	if h >= 0 {
		columns = append(columns, m+1+h)
	}
	k := len(columns)
	normal, rhs := mat.NewSymDense(k, nil), mat.NewVecDense(k, nil)
	for a, p := range columns {
		rhs.SetVec(a, t.product(p, j))
		for b, q := range columns[:a+1] {
			normal.SetSym(a, b, t.product(p, q))
		}
		normal.SetSym(a, a, (1+1e-9)*normal.At(a, a))
	}
	var factor mat.Cholesky
	var w mat.VecDense
	if !factor.Factorize(normal) || factor.SolveVecTo(&w, rhs) != nil {
		return math.Inf(1)
	}
	left := max(0, t.product(j, j)-mat.Dot(&w, rhs))
	return left * t.variance / (t.variance + t.sigma[j]*t.sigma[j])
}

// startingAt returns the cost of starts at one node alone.
func startingAt(node int) func(int) float64 {
	return func(k int) float64 {
		if k == node {
			return 0
		}
		return math.Inf(1)
	}
}

// deviation returns the standard deviation s with which noise times s is nearest to the states at a node, where the
// network is evaluated first: AFS's start (Dockhorn et al. 2022, eq. 8), by least squares.
func (t *nodeProducts) deviation(i int) float64 {
	return t.sigma[0] * t.product(0, i) / t.product(0, 0)
}

// startError returns the weighted error of noise times deviation(i) as the state at node i.
func (t *nodeProducts) startError(i int) float64 {
	left := max(0, t.product(i, i)-t.product(0, i)*t.product(0, i)/t.product(0, 0))
	return left * t.variance / (t.variance + t.sigma[i]*t.sigma[i])
}

func (t *nodeProducts) product(a, b int) float64 { return t.products[a*(2*len(t.sigma)-1)+b] }
