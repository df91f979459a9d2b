// Package stats holds means of samples with their standard errors.
//
// The package imports the standard library only.
package stats

import "math"

// Mean returns the mean of x, summed in order.
func Mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// MeanStderr returns the mean of independent samples x and its standard error; 0 for a
// single one.
func MeanStderr(x []float64) (mean, stderr float64) {
	mean = Mean(x)
	if len(x) < 2 {
		return mean, 0
	}
	var sum float64
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	n := float64(len(x))
	return mean, math.Sqrt(sum / (n - 1) / n)
}

// StratifiedMean returns the mean of samples of which each has a stratum of its own,
// neighbours in order, and the standard error by the differences d within pairs of
// neighbours,
//
//	√Σd² / n,
//
// the method of collapsed strata (Cochran, Sampling Techniques, 5A.12). What changes
// from one stratum to the next makes it a little too large.
func StratifiedMean(x []float64) (mean, stderr float64) {
	var squares float64
	for i := 0; i+1 < len(x); i += 2 {
		d := x[i+1] - x[i]
		squares += d * d
	}
	return Mean(x), math.Sqrt(squares) / float64(len(x))
}
