package passes

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/setting"
)

// lowestSigma is EDM's σ_min. Below it the residual is that of no network at all, and
// the density follows its limit.
const lowestSigma = schedule.DefaultSigmaMin

// noiseLevels returns n noise levels uniform in ln σ between EDM's lowest, or √g_0, and
// √T.
func noiseLevels(n int, g0, T float64) []float64 {
	low, high := math.Max(math.Sqrt(g0), lowestSigma), math.Sqrt(T)
	if low >= high {
		low = math.Sqrt(g0)
	}
	sigma := make([]float64, n)
	for p := range sigma {
		sigma[p] = low * math.Pow(high/low, float64(p)/float64(n-1))
	}
	return sigma
}

// checkEnds checks the ends of a path, of noise levels that a network was trained on, and c of the loss weight.
func checkEnds(T, g0, c float64, known schedule.Range) error {
	lo, hi := known.Ends()
	switch {
	case !known.Holds(T):
		return setting.Errorf("T", "must lie within the model's noise levels, %.6g … %.6g as variances, got %g",
			lo*lo, hi*hi, T)
	case g0 > 0 && !known.Holds(g0):
		return setting.Errorf("g0", "must lie within the model's noise levels, %.6g … %.6g as variances, got %g",
			lo*lo, hi*hi, g0)
	case !setting.Positive(T):
		return setting.Errorf("T", "must be positive, got %g", T)
	case !(g0 > 0 && g0 < T):
		return setting.Errorf("g0", "must lie between 0 and T = %g, got %g", T, g0)
	case !setting.Positive(c):
		return setting.Errorf("c", "must be positive, got %g", c)
	}
	return nil
}
