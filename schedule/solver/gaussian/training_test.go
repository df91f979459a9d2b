package gaussian

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
)

// TestTrainingLevels: of n values that vary in one direction, by λ, r(σ) = (σ² + λ/n)/(σ² + λ), so that 1 − r is in
// closed form and its moments are found by quadrature.
func TestTrainingLevels(t *testing.T) {
	const λ, n, low, high = 3.0, 8, 1e-2, 1e3
	s := &Spectrum{H: 2, W: 4, C: 1, Directions: make([]Direction, n)}
	s.Directions[2].Variance = λ
	var sigma, ratio []float64
	for i := range 4001 {
		at := low * math.Pow(high/low, float64(i)/4000)
		sigma, ratio = append(sigma, at), append(ratio, s.LossRatio(at, s.Residual(at)))
	}
	near(t, "r(1)", s.LossRatio(1, s.Residual(1)), (1+λ/n)/(1+λ), 1e-12)
	moment := func(k float64) float64 {
		return quad.Fixed(func(l float64) float64 {
			return math.Pow(l-math.Log(low), k) * (λ - λ/n) / (math.Exp(2*l) + λ)
		}, math.Log(low), math.Log(high), 400, quad.Legendre{}, 0)
	}
	mean := moment(1) / moment(0)
	gotMean, gotStd, ok := TrainingLevels(sigma, ratio)
	near(t, "P_mean", gotMean-math.Log(low), mean, 1e-3)
	near(t, "P_std", gotStd, math.Sqrt(moment(2)/moment(0)-mean*mean), 1e-3)
	if !ok {
		t.Error("there is nothing to learn")
	}
}

// TestWhiteDataLeaveNothing: where all directions vary alike the best scalar is the best denoiser.
func TestWhiteDataLeaveNothing(t *testing.T) {
	s := &Spectrum{H: 1, W: 2, C: 1, Directions: []Direction{{Variance: 0.3}, {Mean: 1, Variance: 0.3}}}
	ratio := []float64{s.LossRatio(0.1, s.Residual(0.1)), s.LossRatio(7, s.Residual(7))}
	near(t, "r", ratio[0]*ratio[1], 1, 1e-12)
	if _, _, ok := TrainingLevels([]float64{0.1, 7}, ratio); ok {
		t.Error("there is something to learn")
	}
}
