package schedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

// minIncrement keeps every increment of ln g away from zero.
const minIncrement = 1e-8

// Theta holds the K−1 unconstrained parameters of a path with K knots at uniform times τ = linspace(0, T, K):
//
//	inc_i = softplus(θ_i) + 1e-8,   S = Σ_i inc_i,   C_k = Σ_{i<k} inc_i,
//	ln g_k = ln g_0 + (ln T − ln g_0) C_k/S.
//
// So g(0) = g_0, g(T) = T and g is strictly increasing for every θ. The common scale of the increments has no effect.
type Theta []float64

// softplus returns ln(1 + e^x).
func softplus(x float64) float64 {
	return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
}

// softplusInverse returns x with softplus(x) = y > 0, without overflow for large y or cancellation for small y.
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
	return !slices.ContainsFunc(th, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// Path returns the path of θ between the variances g0 and T. It panics unless θ is finite and not empty, and 0 < g0 <
// T.
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

// separate makes an almost increasing l strictly increasing without moving its ends: very uneven θ may round an
// increment of ln g to 0.
func separate(l []float64) {
	n := len(l) - 1
	for k := 1; k < n; k++ {
		l[k] = math.Max(l[k], math.Nextafter(l[k-1], math.Inf(1)))
	}
	for k := n - 1; k > 0; k-- {
		l[k] = math.Min(l[k], math.Nextafter(l[k+1], math.Inf(-1)))
	}
}

// uniform returns linspace(0, T, n), counted from the nearer end and rounded once, as in PyTorch.
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

// Pull adds to dst [K−1] the gradient with respect to θ, given the gradient dlogg [K] with respect to ln g at the
// knots:
//
//	∂ln g_k/∂θ_i = (ln T − ln g_0)/S · sigmoid(θ_i) · (1[i < k] − C_k/S).
//
// It panics for other lengths.
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

// Chain adds to dst the gradient of A g(t) + B ġ(t) with respect to θ, for constant A and B: dst[i] += A ∂g/∂θ_i + B
// ∂ġ/∂θ_i. For many samples of one path it is faster to sum Path.Chain over them and to call Pull once.
func (th Theta) Chain(T, g0, t, a, b float64, dst []float64) {
	dlogg := make([]float64, len(th)+1)
	th.Path(T, g0).Chain(t, a, b, dlogg)
	th.Pull(T, g0, dlogg, dst)
}

// Defaults of schedules: T = 80², the variance at t = 0, and the number of knots.
const (
	DefaultT     = 6400.0
	DefaultG0    = 1e-9
	DefaultKnots = 32
)

// Defaults of noise levels, and the exponent of EDMLevels (Karras et al., arXiv:2206.00364, table 1).
const (
	DefaultSigmaMin = 0.002
	DefaultSigmaMax = 80.0
	EDMRho          = 7.0
)

// Initial lists the initial schedules that InitialTheta knows.
var Initial = []string{"edm", "log-linear", "cosine"}

// InitialTheta returns the parameters of an initial schedule, one of Initial. It returns an *Error unless 2 ≤ knots ≤
// 65536 and 0 < g0 < T, and for "edm" unless √T > 0.002.
func InitialTheta(kind string, knots int, T, g0 float64) (Theta, error) {
	if err := checkRange(knots, T, g0); err != nil {
		return nil, err
	}
	switch kind {
	case "edm":
		if knots > 2 && !(math.Sqrt(T) > DefaultSigmaMin) {
			return nil, failf(-1, "T must be above 0.002², the end of EDM's grid, got T = %v; or choose the log-linear start", T)
		}
		return EDMTheta(knots, T, g0), nil
	case "log-linear":
		return LogLinearTheta(knots, T, g0), nil
	case "cosine":
		return CosineTheta(knots, T, g0), nil
	}
	return nil, failf(-1, "the start %s", suggest.OneOf(kind, Initial))
}

func checkRange(knots int, T, g0 float64) error {
	if knots < 2 || knots > 1<<16 {
		return failf(-1, "knots must lie in 2 … 65536, got %d", knots)
	}
	if !(g0 > 0) || !(T > g0) || math.IsInf(T, 1) {
		return failf(-1, "g0 must lie between 0 and T, got g0 = %v, T = %v", g0, T)
	}
	return nil
}

// EDMLevels returns n noise levels from hi down to lo by EDM's rule,
//
//	σ_i = (hi^{1/ρ} + i/(n−1) (lo^{1/ρ} − hi^{1/ρ}))^ρ.
//
// For n = 1 it is hi.
func EDMLevels(hi, lo, rho float64, n int) []float64 {
	a, b := math.Pow(hi, 1/rho), math.Pow(lo, 1/rho)
	sigma := make([]float64, n)
	for i := range sigma {
		sigma[i] = math.Pow(a+float64(i)/float64(max(n-1, 1))*(b-a), rho)
	}
	return sigma
}

// EDMTheta returns the parameters of EDM's noise levels: K of EDMLevels from √T down to 0.002, or to √g0 if that is
// higher, with the lowest variance replaced by g0.
func EDMTheta(knots int, T, g0 float64) Theta {
	th := make(Theta, knots-1)
	last := math.Log(T)
	for i, sigma := range EDMLevels(math.Sqrt(T), math.Max(DefaultSigmaMin, math.Sqrt(g0)), EDMRho, knots)[1:] {
		logg := math.Log(sigma * sigma)
		if i == knots-2 {
			logg = math.Log(g0)
		}
		th[knots-2-i] = softplusInverse(last - logg)
		last = logg
	}
	return th
}

// LogLinearTheta returns the parameters with which ln g is linear in t.
func LogLinearTheta(knots int, T, g0 float64) Theta {
	y := (math.Log(T) - math.Log(g0)) / float64(knots-1)
	return slices.Repeat(Theta{softplusInverse(y)}, knots-1)
}

// CosineTheta returns the parameters of the cosine schedule (Nichol and Dhariwal, arXiv:2102.09672) in terms of the
// variance, with both ends moved to g0 and T:
//
//	g(t) = tan²(φ_0 + (φ_1 − φ_0) t/T),  φ_0 = atan √g_0,  φ_1 = atan √T.
func CosineTheta(knots int, T, g0 float64) Theta {
	lo, hi := math.Atan(math.Sqrt(g0)), math.Atan(math.Sqrt(T))
	logg := make([]float64, knots)
	for k := range logg {
		logg[k] = 2 * math.Log(math.Tan(lo+(hi-lo)*float64(k)/float64(knots-1)))
	}
	logg[0], logg[knots-1] = math.Log(g0), math.Log(T)
	return thetaFromLog(logg)
}

// ThetaFromPath returns the parameters whose path has the ln g of p at K uniform knots, with its ends moved to g0 and
// T. It is p itself if p has these knots and ends.
func ThetaFromPath(p *Path, knots int, T, g0 float64) Theta {
	logg := make([]float64, knots)
	for k, t := range uniform(p.T(), knots) {
		g, _ := p.Eval(t)
		logg[k] = math.Min(math.Max(math.Log(g), math.Log(g0)), math.Log(T))
	}
	logg[0], logg[knots-1] = math.Log(g0), math.Log(T)
	separate(logg)
	return thetaFromLog(logg)
}

// EDM returns EDM's noise levels from the variance g0 to T as a schedule shared by all classes. Errors are those of
// InitialTheta.
func EDM(T, g0 float64) (*Schedule, error) {
	theta, err := InitialTheta("edm", DefaultKnots, T, g0)
	if err != nil {
		return nil, err
	}
	return FromTheta(Family{Basis: "none"}, nil, [][]Theta{{theta}}, T, g0)
}

// thetaFromLog inverts Theta.Path. The increments have the scale 1, or a larger one if the smallest increment would be
// below minIncrement.
func thetaFromLog(logg []float64) Theta {
	least := math.Inf(1)
	for k := 1; k < len(logg); k++ {
		least = math.Min(least, logg[k]-logg[k-1])
	}
	scale := math.Max(1, 2*minIncrement/least)
	th := make(Theta, len(logg)-1)
	for i := range th {
		th[i] = softplusInverse(scale*(logg[i+1]-logg[i]) - minIncrement)
	}
	return th
}
