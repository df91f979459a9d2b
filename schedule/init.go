package schedule

import (
	"math"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

// The constants of EDM's noise grid (Karras et al., arXiv:2206.00364, table 1).
const (
	edmSigmaMin = 0.002
	edmRho      = 7
)

// DefaultT, DefaultG0 and DefaultKnots are what a schedule has unless asked
// otherwise: T = 80², the smallest variance and the number of knots.
const (
	DefaultT     = 6400.0
	DefaultG0    = 1e-9
	DefaultKnots = 32
)

// Initial lists the names of the starts that are formulas.
var Initial = []string{"edm", "log-linear", "cosine"}

// InitialTheta returns the start of a schedule by its name, one of Initial. Unlike EDMTheta and its sisters it checks
// its arguments.
func InitialTheta(kind string, knots int, T, g0 float64) (Theta, error) {
	if err := checkRange(knots, T, g0); err != nil {
		return nil, err
	}
	switch kind {
	case "edm":
		if knots > 2 && !(math.Sqrt(T) > edmSigmaMin) {
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

// edmVariance returns the k-th of n variances of EDM's grid in increasing order,
//
//	σ = (σ_max^{1/7} + s (σ_min^{1/7} − σ_max^{1/7}))^7,  σ_max = √T,  σ_min = max(0.002, √g_0),  s = 1 − k/(n−1).
func edmVariance(k, n int, T, g0 float64) float64 {
	sigmaMin := math.Max(edmSigmaMin, math.Sqrt(g0))
	hi, lo := math.Pow(math.Sqrt(T), 1.0/edmRho), math.Pow(sigmaMin, 1.0/edmRho)
	s := float64(n-1-k) / float64(n-1)
	sigma := math.Pow(hi+s*(lo-hi), edmRho)
	return sigma * sigma
}

// EDMTheta returns the parameters of EDM's noise grid: the K variances of its ρ = 7
// rule between 0.002², or g0 where that is higher, and T; the lowest is g0.
func EDMTheta(knots int, T, g0 float64) Theta {
	logg := make([]float64, knots)
	for k := range logg {
		logg[k] = math.Log(edmVariance(k, knots, T, g0))
	}
	logg[0], logg[knots-1] = math.Log(g0), math.Log(T)
	th := make(Theta, knots-1)
	for i := range th {
		th[i] = softplusInverse(logg[i+1] - logg[i])
	}
	return th
}

// LogLinearTheta returns the parameters of ln g linear in t.
func LogLinearTheta(knots int, T, g0 float64) Theta {
	th := make(Theta, knots-1)
	y := (math.Log(T) - math.Log(g0)) / float64(knots-1)
	for i := range th {
		th[i] = softplusInverse(y)
	}
	return th
}

// CosineTheta returns the parameters of the cosine schedule (Nichol and Dhariwal,
// arXiv:2102.09672) in terms of the variance, with both ends moved to g0 and T:
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

// ThetaFromPath returns the parameters whose path meets p at K uniform knots, its
// ends moved to g0 and T: exactly p where p has these knots and ends.
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

// thetaFromLog inverts Theta.Path. The scale of the increments is free: it is 1,
// or larger where the smallest increment would fall under the floor.
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
