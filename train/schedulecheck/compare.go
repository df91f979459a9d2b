package schedulecheck

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// score returns the largest |mean(a − b)| over the entries, in units of its standard
// error over the samples. A nil b stands for zeros.
func score(a, b [][]float64) float64 {
	var worst float64
	n := float64(len(a))
	for k := range a[0] {
		var sum, square float64
		for i := range a {
			d := a[i][k]
			if b != nil {
				d -= b[i][k]
			}
			sum += d
			square += d * d
		}
		mean := sum / n
		z := math.Abs(mean) / math.Sqrt((square/n-mean*mean)/(n-1))
		if !(z <= worst) { // NaN sticks
			worst = z
		}
	}
	return worst
}

// distance returns the rms of a − b over that of b.
func distance(a, b [][]float64) float64 {
	var difference, size float64
	for i := range a {
		for k, v := range a[i] {
			d := v - b[i][k]
			difference += d * d
			size += b[i][k] * b[i][k]
		}
	}
	return math.Sqrt(difference / size)
}

// normalBound returns what a normal variable exceeds in size with probability p.
func normalBound(p float64) float64 { return -distuv.UnitNormal.Quantile(p / 2) }
