package schedule

import "math"

// Jackknife corrects an estimate of n equal parts of the data for its bias to first
// order, and tells its standard error (Quenouille; Tukey 1958):
//
//	θ = n θ̂ − (n−1) θ̄,   s² = (n−1)/n Σ_i (θ̂_i − θ̄)²,
//
// θ̂ = of(−1) being the estimate from all parts, θ̂_i = of(i) that without part i, and θ̄
// the mean of the θ̂_i. A root of a noisy mean, as in ∫√F dg, is too small by such a
// bias, and the sum of roots over subspaces by more than the root of the sum. One part
// tells nothing of either: θ̂ and no error.
func Jackknife(n int, of func(without int) float64) (value, stderr float64) {
	all := of(-1)
	if n < 2 {
		return all, 0
	}
	without := make([]float64, n)
	var mean float64
	for i := range without {
		without[i] = of(i)
		mean += without[i] / float64(n)
	}
	var squares float64
	for _, v := range without {
		squares += (v - mean) * (v - mean)
	}
	return float64(n)*all - float64(n-1)*mean, math.Sqrt(float64(n-1) / float64(n) * squares)
}

// LeastEnergy returns (∫√F dg)² between the variances g0 and gT for the density of
// residuals E|P(flow + ε)|² that were measured at the noise levels sigma, increasing.
func LeastEnergy(sigma, residual []float64, c, g0, gT float64) (float64, error) {
	samples := make([]Sample, len(sigma))
	for i, s := range sigma {
		samples[i] = ResidualSample(s, residual[i], 0, c)
	}
	d, err := NewDensity(samples)
	if err != nil {
		return 0, err
	}
	l := d.length(math.Log(g0), math.Log(gT))
	return l * l, nil
}
