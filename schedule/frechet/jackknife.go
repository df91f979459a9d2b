package frechet

import "math"

// Jackknife returns an estimate from n equal parts of the data, corrected for its bias to first order, and its standard
// error (Quenouille; Tukey 1958):
//
//	θ = n θ̂ − (n−1) θ̄,   s² = (n−1)/n Σ_i (θ̂_i − θ̄)².
//
// θ̂ = estimate(−1) is the estimate from all parts, θ̂_i = estimate(i) the one without part i, and θ̄ the mean of the
// θ̂_i. The root of a noisy mean, as in ∫√F dg, has such a bias. For n < 2 it returns θ̂ and 0.
func Jackknife(n int, estimate func(without int) float64) (value, stderr float64) {
	all := estimate(-1)
	if n < 2 {
		return all, 0
	}
	without := make([]float64, n)
	for i := range without {
		without[i] = estimate(i)
	}
	mean, stderr := meanStderr(without)
	return float64(n)*all - float64(n-1)*mean, stderr
}

// Change returns ln(state/start) of a measure, whose values are without each of some parts, and its standard error: θ̄
// and s of [Jackknife].
func Change(start, state []float64) (change, stderr float64) {
	ratios := make([]float64, len(start))
	for i := range start {
		ratios[i] = math.Log(state[i] / start[i])
	}
	return meanStderr(ratios)
}

// meanStderr returns the mean of estimates without each of n parts, and the standard error of an estimate.
func meanStderr(without []float64) (mean, stderr float64) {
	n := float64(len(without))
	for _, v := range without {
		mean += v
	}
	mean /= n
	var squares float64
	for _, v := range without {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt((n - 1) / n * squares)
}
