package start

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Law is the normal law N(μ, Σ) of H×W images of C channels,
//
//	Σ = Fᵀ diag(Variance) F,
//
// where F is the DCT with axes of the channels at each frequency (basis.Frequencies).
type Law struct {
	H, W, C int
	Images  int64     // that it was estimated from; 0 if unknown
	Mean    []float64 // μ [H·W·C], channels fastest

	Variance []float64 // [H·W·C]
	Axes     []float64 // [H·W, C, C]; nil: the channels are the axes
}

// Check returns an *Error unless sizes match, numbers are finite, variances are not negative and axes are orthonormal.
func (l *Law) Check() error {
	if l.H < 1 || l.W < 1 || l.C < 1 {
		return failf("mean", "must be an image [H, W, C] of positive sizes, got %d×%d×%d", l.H, l.W, l.C)
	}
	d := l.size()
	switch {
	case len(l.Mean) != d:
		return failf("mean", "must have %d values, got %d", d, len(l.Mean))
	case len(l.Variance) != d:
		return failf("variance", "must have %d values, got %d", d, len(l.Variance))
	case l.Axes != nil && len(l.Axes) != d*l.C:
		return failf("axes", "must have %d values, got %d", d*l.C, len(l.Axes))
	}
	for _, v := range l.Mean {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return failf("mean", "must be finite, got %v", v)
		}
	}
	for _, v := range l.Variance {
		if !(v >= 0) || math.IsInf(v, 1) {
			return failf("variance", "must be finite and not negative, got %v", v)
		}
	}
	for block := range slices.Chunk(l.Axes, l.C*l.C) {
		if i, j, p, ok := basis.Orthonormal(slices.Collect(slices.Chunk(block, l.C))); !ok {
			return failf("axes", "must be orthonormal, got rows %d and %d with the product %v", i, j, p)
		}
	}
	return nil
}

func (l *Law) size() int { return l.H * l.W * l.C }

// frequencies returns the transform to the law's own directions.
func (l *Law) frequencies() *basis.Frequencies { return basis.NewFrequencies(l.H, l.W, l.C, l.Axes) }

// TotalVariance returns tr Σ.
func (l *Law) TotalVariance() (sum float64) {
	for _, v := range l.Variance {
		sum += v
	}
	return sum
}

// Covariance returns Σ, [H·W·C]².
func (l *Law) Covariance() *mat.SymDense {
	d := l.size()
	out := mat.NewSymDense(d, nil)
	transform, row := l.frequencies(), make([]float64, d)
	for k, v := range l.Variance {
		clear(row)
		row[k] = 1
		transform.Inverse(row, row)
		out.SymRankOne(out, v, mat.NewVecDense(d, row))
	}
	return out
}

// OnAxes returns the law's means and variances along the frequencies of the DCT with axes [H·W, C, C] of the channels;
// nil means the channels themselves. ok is false if these directions are correlated by more than 1e-9 of the largest
// variance.
func (l *Law) OnAxes(axes []float64) (mean, variance []float64, ok bool) {
	d, c := l.size(), l.C
	transform := basis.NewFrequencies(l.H, l.W, c, axes)
	mean, variance = make([]float64, d), make([]float64, d)
	transform.Forward(mean, l.Mean)
	var largest float64
	for _, v := range l.Variance {
		largest = math.Max(largest, v)
	}
	unit := func(axes []float64, f, k, a int) float64 {
		switch {
		case axes != nil:
			return axes[(f*c+k)*c+a]
		case k == a:
			return 1
		}
		return 0
	}
	turn := make([]float64, c*c) // of the law's axes to those given, at one frequency
	for f := range l.H * l.W {
		for k := range c {
			for q := range c {
				turn[k*c+q] = 0
				for a := range c {
					turn[k*c+q] += unit(axes, f, k, a) * unit(l.Axes, f, q, a)
				}
			}
		}
		for k := range c {
			for k2 := range k + 1 {
				var sum float64
				for q := range c {
					sum += turn[k*c+q] * l.Variance[f*c+q] * turn[k2*c+q]
				}
				if k == k2 {
					variance[f*c+k] = sum
				} else if math.Abs(sum) > 1e-9*largest {
					return nil, nil, false
				}
			}
		}
	}
	return mean, variance, true
}
