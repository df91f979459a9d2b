package schedule

import (
	"math"
	"slices"
	"sort"
)

// Path is an increasing variance g(t) on [0, T] whose logarithm is linear between knots (τ_k, ln g_k):
//
//	ln g(t) = ln g_k + s_k (t − τ_k),  s_k = (ln g_{k+1} − ln g_k)/(τ_{k+1} − τ_k),
//	ġ(t)    = s_k g(t)                                   for τ_k < t ≤ τ_{k+1}.
//
// At a knot the interval to its left counts, and at t = 0 the first one. A Path is immutable and safe for concurrent
// use.
type Path struct {
	tau  []float64 // knots' times, tau[0] = 0
	g    []float64 // variances at the knots, returned exactly there
	logg []float64 // ln g
}

// NewPath returns the path through the knots (tau[k], g[k]). There must be at least two, tau must increase strictly
// from 0, and g must be positive and increase strictly; all must be finite. Otherwise it returns an *Error whose Row is
// the first knot that breaks a rule.
func NewPath(tau, g []float64) (*Path, error) {
	if len(tau) != len(g) {
		return nil, failf(-1, "a path must have one g for each t, got %d times and %d variances", len(tau), len(g))
	}
	if len(tau) < 2 {
		return nil, failf(len(tau)-1, "a path must have at least two knots, t = 0 and t = T, got %d", len(tau))
	}
	p := &Path{tau: slices.Clone(tau), g: slices.Clone(g), logg: make([]float64, len(g))}
	for k, t := range tau {
		p.logg[k] = math.Log(g[k])
		switch {
		case math.IsNaN(t) || math.IsInf(t, 0):
			return nil, failf(k, "t must be finite, got %v", t)
		case math.IsNaN(g[k]) || math.IsInf(g[k], 0) || g[k] <= 0:
			return nil, failf(k, "g must be finite and positive, got %v", g[k])
		case k == 0 && t != 0:
			return nil, failf(k, "t must start at 0, got %v", t)
		case k > 0 && t <= tau[k-1]:
			return nil, failf(k, "t must be strictly increasing, got %v after %v", t, tau[k-1])
		case k > 0 && (g[k] <= g[k-1] || p.logg[k] <= p.logg[k-1]):
			return nil, failf(k, "g must be strictly increasing, got %v after %v", g[k], g[k-1])
		}
	}
	return p, nil
}

// PathThrough returns the path that has the variances g, decreasing, at uniform times from T down to 0. Errors are
// those of NewPath.
func PathThrough(g []float64, T float64) (*Path, error) {
	n := len(g) - 1
	tau, rising := make([]float64, n+1), slices.Clone(g)
	for k := range n {
		tau[k] = T * float64(k) / float64(n)
	}
	tau[n] = T
	slices.Reverse(rising)
	return NewPath(tau, rising)
}

// T returns the last knot's time.
func (p *Path) T() float64 { return p.tau[len(p.tau)-1] }

// G0 returns g(0).
func (p *Path) G0() float64 { return p.g[0] }

// GT returns g(T).
func (p *Path) GT() float64 { return p.g[len(p.g)-1] }

// Knots returns copies of the knots' times and of ln g there.
func (p *Path) Knots() (tau, logg []float64) {
	return slices.Clone(p.tau), slices.Clone(p.logg)
}

// interval returns the index k ≥ 1 of the right end of the interval that contains t; of two intervals, the left one.
func (p *Path) interval(t float64) int {
	k := sort.SearchFloat64s(p.tau, t)
	return min(max(k, 1), len(p.tau)-1)
}

func (p *Path) slope(k int) float64 {
	return (p.logg[k] - p.logg[k-1]) / (p.tau[k] - p.tau[k-1])
}

// Eval returns g and ġ at time t, clamped to [0, T].
func (p *Path) Eval(t float64) (g, gdot float64) {
	k := p.interval(t)
	switch {
	case t >= p.tau[k]:
		g = p.g[k]
	case t <= p.tau[k-1]:
		g = p.g[k-1]
	default:
		g = math.Exp(p.logg[k-1] + (t-p.tau[k-1])*p.slope(k))
	}
	return g, g * p.slope(k)
}

// Inverse returns the time at which the variance is g, in closed form,
//
//	t = τ_{k−1} + (ln g − ln g_{k−1})/s_k,
//
// clamped to [0, T].
func (p *Path) Inverse(g float64) float64 {
	if !(g > p.g[0]) {
		return 0
	}
	n := len(p.g) - 1
	if g >= p.g[n] {
		return p.tau[n]
	}
	k := max(sort.SearchFloat64s(p.g, g), 1)
	if g == p.g[k] {
		return p.tau[k]
	}
	w := (math.Log(g) - p.logg[k-1]) / (p.logg[k] - p.logg[k-1])
	return min(max(p.tau[k-1]+w*(p.tau[k]-p.tau[k-1]), p.tau[k-1]), p.tau[k])
}

// Chain adds to dlogg [K] the derivative of A g(t) + B ġ(t) with respect to ln g at each knot, for constant A and B.
// With w the fraction of the interval [τ_{k−1}, τ_k] before t and Δ its length,
//
//	∂/∂ln g_{k−1} = (1 − w)(A g + B ġ) − B g/Δ,
//	∂/∂ln g_k     =      w (A g + B ġ) + B g/Δ.
//
// It panics unless len(dlogg) is the number of knots.
func (p *Path) Chain(t, a, b float64, dlogg []float64) {
	if len(dlogg) != len(p.tau) {
		panic("schedule: Chain: len(dlogg) is not the number of knots")
	}
	k := p.interval(t)
	width := p.tau[k] - p.tau[k-1]
	w := min(max((t-p.tau[k-1])/width, 0), 1)
	g, gdot := p.Eval(t)
	both := a*g + b*gdot
	dlogg[k-1] += (1-w)*both - b*g/width
	dlogg[k] += w*both + b*g/width
}

// Omega returns the weight of a squared residual in the trajectory loss,
//
//	ω = ġ²/(g (c + g)),
//
// of order 1. In the paper c approximates the data's covariance, Cov(x_0) ≈ c I; runs take its trace by default.
func Omega(g, gdot, c float64) float64 {
	return gdot * gdot / (g * (c + g))
}

// OmegaOfOrder returns the weight of a squared residual for solvers of order p, ω (T ġ/g)^{p−1}; for p = 1 it is Omega.
func OmegaOfOrder(p int, T, g, gdot, c float64) float64 {
	return math.Pow(T*gdot/g, float64(p-1)) * Omega(g, gdot, c)
}

// log returns ln g(t).
func (p *Path) log(t float64) float64 {
	k := p.interval(t)
	switch {
	case t >= p.tau[k]:
		return p.logg[k]
	case t <= p.tau[k-1]:
		return p.logg[k-1]
	}
	return p.logg[k-1] + (t-p.tau[k-1])*p.slope(k)
}
