// Package gaussian chooses noise levels for a solver without a network, on the data's own Gaussian.
//
// The data are replaced by a normal law whose principal directions are those of the DCT. Then the probability flow is
// linear along every direction: at variance g of the noise, a direction of mean m and variance λ has
//
//	flow = −√g (x − m)/(λ + g),   D = (λ x + g m)/(λ + g),
//
// so that a solver.Plan, whose combinations are linear too, maps the unit normal ξ exactly to a ξ + b m with two
// numbers a and b per direction. The sampler's distance to the data's law is known in closed form, without samples,
//
//	W2² = Σ (|a| − √λ)² + (b − 1)² m²   over the directions,
//
// and the nodes of each subspace can be chosen to minimise it: least squares in a few dozen numbers, about a second on
// one core. The nodes depend on the data, the basis, the solver and the number of evaluations, and on no model.
//
// Begin with spectrum.go, which says what is kept of the data; then bench.go, the exact bench, and optimize.go.
package gaussian

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// Direction is a direction of image space in which the data is normal.
type Direction struct {
	Mean     float64 // not negative: a direction has no sign
	Variance float64
	// Start is the law of the initial states without their noise, or nil if sampling starts from noise alone. See
	// Spectrum.StartedFrom.
	Start *StartLaw
}

// StartLaw is a start's mean and variance along a direction: with noise of variance g, x_T = Mean + √(Variance + g) ξ.
type StartLaw struct{ Mean, Variance float64 }

// Spectrum is a normal law of H×W images of C channels: independent in the H·W frequencies of the orthonormal DCT-II
// and, at each frequency, in C orthogonal combinations of the channels.
//
// A basis acts on every channel alike, so a frequency belongs to one subspace with all its channels. The combinations
// of channels are those that are uncorrelated in the data. So luminance and the weaker colour differences have
// variances of their own.
type Spectrum struct {
	H, W, C int
	// Directions has C directions for each frequency (u, v), u slow, in order of decreasing variance.
	Directions []Direction
	// Axes has each direction's unit vector in the channels, [H·W·C, C]; nil means the channels themselves.
	Axes []float64

	moments *basis.FrequencyMoments // of NewSpectrum
}

// StartedFrom returns the spectrum with sampling started from a law, x_T = μ + (Σ + M)^½ ξ. It returns a *solver.Error
// for a law of another size, or one that correlates the spectrum's directions.
func (s *Spectrum) StartedFrom(l *start.Law) (*Spectrum, error) {
	if l.H != s.H || l.W != s.W || l.C != s.C {
		return nil, failf("start", "must be made for the data's images of %d×%d×%d, got %d×%d×%d", s.H, s.W, s.C, l.H, l.W,
			l.C)
	}
	mean, variance, ok := l.OnAxes(s.Axes)
	if !ok {
		return nil, failf("start", "must be diagonal where the data's Gaussian is, in the DCT with the data's own axes of "+
			"the channels; make one of the same data with covariance dct")
	}
	return s.withStarts(func(i int) *StartLaw { return &StartLaw{Mean: mean[i], Variance: variance[i]} }), nil
}

// WithMatchedStart returns the spectrum with sampling started from its own law.
func (s *Spectrum) WithMatchedStart() *Spectrum {
	return s.withStarts(func(i int) *StartLaw {
		return &StartLaw{Mean: s.Directions[i].Mean, Variance: s.Directions[i].Variance}
	})
}

func (s *Spectrum) withStarts(start func(i int) *StartLaw) *Spectrum {
	out := *s
	out.Directions = slices.Clone(s.Directions)
	for i := range out.Directions {
		out.Directions[i].Start = start(i)
	}
	return &out
}

// Variance returns the total variance, Σ λ.
func (s *Spectrum) Variance() float64 {
	var sum float64
	for _, d := range s.Directions {
		sum += d.Variance
	}
	return sum
}

// Horizon returns the least variance T of the noise from which the exact flow, started from noise alone, ends within
// W2² = share·Variance of the data:
//
//	W2² = Σ λ (1 − √(T/(λ + T)))² + m²λ/(λ + T)   over the directions.
//
// share lies between 0 and 1. Horizon is 0 for data without variance.
func (s *Spectrum) Horizon(share float64) float64 {
	distance := func(T float64) (sum float64) {
		for _, d := range s.Directions {
			short := 1 - math.Sqrt(T/(d.Variance+T))
			sum += d.Variance * (short*short + d.Mean*d.Mean/(d.Variance+T))
		}
		return sum
	}
	most := share * s.Variance()
	if most == 0 {
		return 0
	}
	low, high := 0.0, s.Variance()
	for distance(high) > most {
		low, high = high, 2*high
	}
	for high-low > 1e-9*high {
		if middle := (low + high) / 2; distance(middle) > most {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// Residual returns E (flow + ε)² = λ/(λ + σ²) of the direction's best denoiser.
func (d Direction) Residual(sigma float64) float64 { return d.Variance / (d.Variance + sigma*sigma) }

// Residual returns E|flow + ε|² of the spectrum's best denoiser.
func (s *Spectrum) Residual(sigma float64) (sum float64) {
	for _, d := range s.Directions {
		sum += d.Residual(sigma)
	}
	return sum
}

// Bands returns the directions of each subspace of a basis none or dct. It returns a *solver.Error for other bases,
// which mix frequencies, and for another size.
func (s *Spectrum) Bands(b *basis.Basis) ([][]Direction, error) {
	bands, ok := b.FrequencyBands()
	switch {
	case !ok:
		return nil, failf("basis", "must be none or dct, where the data's Gaussian is diagonal, got %s", b.Kind())
	case b.H() != s.H || b.W() != s.W:
		return nil, failf("basis", "must split planes of %d×%d as the data has, got %d×%d", s.H, s.W, b.H(), b.W())
	}
	out := make([][]Direction, b.J())
	for f, j := range bands {
		out[j] = append(out[j], s.Directions[f*s.C:(f+1)*s.C]...)
	}
	return out, nil
}

// NewSpectrum returns the spectrum of images with given moments. At each frequency its axes are those of the channels'
// covariance, with the sign that makes the mean positive. It returns a *solver.Error if there are no images, or values
// that are not finite.
func NewSpectrum(m *basis.FrequencyMoments) (*Spectrum, error) {
	if err := m.Check(); err != nil {
		return nil, failf("dataset", "%v", err)
	}
	h, w, c := m.Dims()
	s := &Spectrum{moments: m, H: h, W: w, C: c, Directions: make([]Direction, h*w*c), Axes: make([]float64, h*w*c*c)}
	means, cov := m.Mean(), mat.NewSymDense(c, nil)
	for f := range h * w {
		m.Covariance(f, cov)
		values, rows, ok := start.Eigen(cov)
		if !ok {
			return nil, failf("dataset",
				"must have covariances with eigenvalues, got none for the channels at frequency (%d, %d)", f/w, f%w)
		}
		copy(s.Axes[f*c*c:], rows)
		for k, variance := range values {
			var mean float64
			axis := s.Axes[(f*c+k)*c:][:c]
			for a, v := range axis {
				mean += v * means[f*c+a]
			}
			if mean < 0 {
				floats.Scale(-1, axis)
			}
			s.Directions[f*c+k] = Direction{Mean: math.Abs(mean), Variance: variance}
		}
	}
	return s, nil
}

// InBands returns the spectrum of the channels' mean covariance in each of B bands, with B·C directions and means of 0.
// For N = 0 it is s. s must come from NewSpectrum.
func (s *Spectrum) InBands(bands basis.Bands) (*Spectrum, error) {
	if bands.N == 0 {
		return s, nil
	}
	return NewSpectrum(s.moments.InBands(bands))
}

func failf(field, format string, args ...any) error {
	return &solver.Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}
