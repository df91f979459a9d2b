package schedule

import (
	"fmt"
	"math"
)

// minIncrement keeps every increment of ln g away from zero.
const minIncrement = 1e-8

// Theta holds the K−1 unconstrained parameters of a path with K knots at uniform
// times τ = linspace(0, T, K):
//
//	inc_i = softplus(θ_i) + 1e-8,   S = Σ_i inc_i,   C_k = Σ_{i<k} inc_i,
//	ln g_k = ln g_0 + (ln T − ln g_0) C_k/S.
//
// So g(0) = g_0, g(T) = T and g is strictly increasing whatever θ is. The common
// scale of the increments is free.
type Theta []float64

// softplus returns ln(1 + e^x).
func softplus(x float64) float64 {
	return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
}

// softplusInverse returns x with softplus(x) = y > 0, without overflow for large y
// and without cancellation for small y.
func softplusInverse(y float64) float64 {
	return y + math.Log(-math.Expm1(-y))
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

// increments returns C_0 … C_{K−1}; the last is S.
func (th Theta) increments() []float64 {
	c := make([]float64, len(th)+1)
	for i, v := range th {
		c[i+1] = c[i] + softplus(v) + minIncrement
	}
	return c
}

// Finite reports whether every parameter is a finite number.
func (th Theta) Finite() bool {
	for _, v := range th {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// Path returns the path that θ stands for. It panics if θ is empty or not finite,
// or unless 0 < g0 < T.
func (th Theta) Path(T, g0 float64) *Path {
	if len(th) == 0 || !th.Finite() || !(0 < g0 && g0 < T) || math.IsInf(T, 1) {
		panic(fmt.Sprintf("schedule: Theta.Path needs finite parameters and 0 < g0 < T (θ %v, T %v, g0 %v)", []float64(th), T,
			g0))
	}
	n := len(th)
	c := th.increments()
	low, gap := math.Log(g0), math.Log(T)-math.Log(g0)
	p := &Path{tau: uniform(T, n+1), g: make([]float64, n+1), logg: make([]float64, n+1)}
	for k := range p.logg {
		p.logg[k] = low + gap/c[n]*c[k]
	}
	p.logg[n] = math.Log(T)
	separate(p.logg)
	for k, l := range p.logg {
		p.g[k] = math.Exp(l)
	}
	p.g[0], p.g[n] = g0, T
	return p
}

// separate makes an almost increasing l strictly increasing without moving its
// ends: a θ of very uneven size can round an increment of ln g away.
func separate(l []float64) {
	n := len(l) - 1
	for k := 1; k < n; k++ {
		l[k] = math.Max(l[k], math.Nextafter(l[k-1], math.Inf(1)))
	}
	for k := n - 1; k > 0; k-- {
		l[k] = math.Min(l[k], math.Nextafter(l[k+1], math.Inf(-1)))
	}
}

// uniform returns linspace(0, T, n), counted from the nearer end and rounded once, as
// PyTorch does: a time that is a knot there is the same knot here.
func uniform(T float64, n int) []float64 {
	tau := make([]float64, n)
	step := T / float64(n-1)
	for k := range tau {
		if k < n/2 {
			tau[k] = float64(k) * step
		} else {
			tau[k] = math.FMA(-step, float64(n-1-k), T)
		}
	}
	return tau
}

// Pull adds to dst the gradient with respect to θ, given the gradient dlogg with
// respect to ln g at the knots:
//
//	∂ln g_k/∂θ_i = (ln T − ln g_0)/S · sigmoid(θ_i) · (1[i < k] − C_k/S).
//
// len(dlogg) is len(θ)+1, len(dst) is len(θ).
func (th Theta) Pull(T, g0 float64, dlogg, dst []float64) {
	if len(dlogg) != len(th)+1 || len(dst) != len(th) {
		panic("schedule: Theta.Pull: lengths do not match")
	}
	c := th.increments()
	s := c[len(th)]
	gap := math.Log(T) - math.Log(g0)
	var mean float64 // Σ_k dlogg_k C_k/S
	for k, d := range dlogg {
		mean += d * c[k] / s
	}
	var after float64 // Σ_{k>i} dlogg_k
	for i := len(th) - 1; i >= 0; i-- {
		after += dlogg[i+1]
		dst[i] += gap / s * sigmoid(th[i]) * (after - mean)
	}
}

// Chain adds to dst the gradient of A g(t) + B ġ(t), A and B constant, with respect
// to θ: dst[i] += A ∂g/∂θ_i + B ∂ġ/∂θ_i. For many samples of one path it is cheaper
// to collect Path.Chain over them and to call Pull once.
func (th Theta) Chain(T, g0, t, a, b float64, dst []float64) {
	dlogg := make([]float64, len(th)+1)
	th.Path(T, g0).Chain(t, a, b, dlogg)
	th.Pull(T, g0, dlogg, dst)
}
