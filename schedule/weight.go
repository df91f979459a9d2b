package schedule

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/integrate/quad"
)

const (
	// weightPanel is how far ln g goes at most in a panel of the quadrature, and weightNodes its nodes in one.
	weightPanel = 0.25
	weightNodes = 8
)

// Weighted returns the isotropic path of K knots, uniform in t, along which the trajectory loss is score matching with
// a given weight (the paper's Lemma A.2): with h(g) the mean squared error of the score at variance g,
//
//	∫ ġ²/(c + g) h(g) dt = const ∫ w(g) h(g) dg    where    ġ = const (c + g) w(g),
//
// so t/T = Φ(g)/Φ(T) with Φ(g) = ∫ ds/((c + s) w(s)) from g0. The knots are exact; between them ln g is linear. The
// weight is given at noise levels σ = √g, one or more, increasing: w is a power of σ between two of them, and what it
// is at the ends beyond them. w = 1/(c + g) gives g linear in t. Errors are *Error; their Row is that of the weight.
func Weighted(sigma, w []float64, c, T, g0 float64, knots int) (*Path, error) {
	switch {
	case len(sigma) == 0 || len(sigma) != len(w):
		return nil, failf(-1, "a weight must have one w for each σ and at least one, got %d and %d", len(w), len(sigma))
	case !(c > 0) || math.IsInf(c, 1):
		return nil, failf(-1, "c must be positive and finite, got %v", c)
	}
	for i, s := range sigma {
		switch {
		case !(s > 0) || math.IsInf(s, 1) || i > 0 && s <= sigma[i-1]:
			return nil, failf(i, "σ must be positive, finite and increasing, got %v", s)
		case !(w[i] > 0) || math.IsInf(w[i], 1):
			return nil, failf(i, "w must be positive and finite, got %v", w[i])
		}
	}
	if err := checkRange(knots, T, g0); err != nil {
		return nil, err
	}
	return newWeight(sigma, w, c, T, g0).path(knots, T, g0)
}

// weight is Φ at the ends of panels in ln g.
type weight struct {
	at, log []float64 // ln g and ln w where w is given
	c       float64
	ends    []float64 // of the panels, in ln g
	phi     []float64 // Φ there
}

func newWeight(sigma, w []float64, c, T, g0 float64) *weight {
	f := &weight{c: c}
	for i, s := range sigma {
		f.at, f.log = append(f.at, 2*math.Log(s)), append(f.log, math.Log(w[i]))
	}
	lo, hi := math.Log(g0), math.Log(T)
	cuts := []float64{lo}
	for _, x := range f.at { // w has a kink there
		if lo < x && x < hi {
			cuts = append(cuts, x)
		}
	}
	cuts = append(cuts, hi)
	f.ends, f.phi = []float64{lo}, []float64{0}
	for i, from := range cuts[:len(cuts)-1] {
		n := int(math.Ceil((cuts[i+1] - from) / weightPanel))
		for k := 1; k <= n; k++ {
			end := from + (cuts[i+1]-from)*float64(k)/float64(n)
			f.phi = append(f.phi, f.phi[len(f.phi)-1]+f.integral(f.ends[len(f.ends)-1], end))
			f.ends = append(f.ends, end)
		}
	}
	return f
}

// integral is ∫ g/((c + g) w) d ln g.
func (f *weight) integral(from, to float64) float64 {
	return quad.Fixed(func(x float64) float64 {
		return math.Exp(-f.logAt(x)) / (1 + f.c*math.Exp(-x))
	}, from, to, weightNodes, quad.Legendre{}, 0)
}

// logAt returns ln w.
func (f *weight) logAt(x float64) float64 {
	i := sort.SearchFloat64s(f.at, x)
	switch i {
	case 0:
		return f.log[0]
	case len(f.at):
		return f.log[i-1]
	}
	part := (x - f.at[i-1]) / (f.at[i] - f.at[i-1])
	return (1-part)*f.log[i-1] + part*f.log[i]
}

// path inverts Φ at uniform times.
func (f *weight) path(knots int, T, g0 float64) (*Path, error) {
	tau := uniform(T, knots)
	g := make([]float64, knots)
	whole := f.phi[len(f.phi)-1]
	for k := range g {
		want := whole * tau[k] / T
		i, _ := slices.BinarySearch(f.phi, want)
		i = min(max(i, 1), len(f.phi)-1)
		lo, hi := f.ends[i-1], f.ends[i]
		for range 60 {
			if mid := (lo + hi) / 2; f.phi[i-1]+f.integral(f.ends[i-1], mid) < want {
				lo = mid
			} else {
				hi = mid
			}
		}
		g[k] = math.Exp((lo + hi) / 2)
	}
	g[0], g[knots-1] = g0, T
	for k := 1; k < knots; k++ {
		if !(g[k] > g[k-1]) || math.IsNaN(whole-whole) {
			return nil, failf(-1, "the weight leaves less time than numbers resolve about g = %.3g; take one that varies less",
				g[k])
		}
	}
	return NewPath(tau, g)
}
