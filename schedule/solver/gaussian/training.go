package gaussian

import "math"

// LossRatio returns the part that a denoiser's residual E|flow + ε|² leaves of the loss from which EDM's
// preconditioning begins, that of the best scalar multiple of the noisy image: with n values of variance σ_d²,
//
//	r(σ) = residual/n · (σ² + σ_d²)/σ_d².
//
// It is 1 if the denoiser knows no more of the data than σ_d.
func (s *Spectrum) LossRatio(sigma, residual float64) float64 {
	n := float64(len(s.Directions))
	return residual / n * (1 + sigma*sigma*n/s.Variance())
}

// TrainingLevels returns the mean and the standard deviation of ln σ, EDM's P_mean and P_std, under the weight 1 − r(σ):
// noise levels are worth training at as far as the loss can be reduced there. The levels are uniform in ln σ. ok is
// false if it can be reduced nowhere.
func TrainingLevels(sigma, ratio []float64) (mean, std float64, ok bool) {
	const least = 1e-6 // below it 1 − r is rounding
	var sum, first, second float64
	for i, r := range ratio {
		if w := 1 - r; w > least {
			l := math.Log(sigma[i])
			sum, first, second = sum+w, first+w*l, second+w*l*l
		}
	}
	if sum == 0 {
		return 0, 0, false
	}
	mean = first / sum
	return mean, math.Sqrt(max(0, second/sum-mean*mean)), true
}
