package gaussian

import (
	"slices"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// Direction is a direction of image space in which the data is normal.
type Direction struct {
	Mean     float64 // not negative: a direction has no sign
	Variance float64
	// Start is the law of the states at which sampling starts, less the noise; nil where it
	// starts from noise alone. See Spectrum.From.
	Start *Along
}

// Along is a start's mean and variance along a direction: with noise of variance g,
// x_T = Mean + √(Variance + g) ξ.
type Along struct{ Mean, Variance float64 }

// Spectrum is a normal law of H×W images of C channels: independent in the H·W
// frequencies of the orthonormal DCT-II and, at each frequency, in C orthogonal
// combinations of the channels.
//
// A basis acts on every channel alike, so a frequency belongs to one subspace with
// all its channels, and their combinations may be chosen freely: those are taken that
// make the data's channels uncorrelated at this frequency. Luminance and the fainter
// colour differences thus keep variances of their own.
type Spectrum struct {
	H, W, C int
	// Directions holds C directions for each frequency (u, v), u slow, in order of
	// decreasing variance.
	Directions []Direction
	// Axes holds each direction's unit vector in the channels, [H·W·C, C]; nil means the
	// channels themselves.
	Axes []float64
}

// From returns the spectrum with sampling started from a law, x_T = μ + (Σ + M)^½ ξ. A law
// that correlates the spectrum's directions, or of another size, is an *Error.
func (s *Spectrum) From(l *start.Law) (*Spectrum, error) {
	if l.H != s.H || l.W != s.W || l.C != s.C {
		return nil, failf("start", "must be made for the data's images of %d×%d×%d, got %d×%d×%d", s.H, s.W, s.C, l.H, l.W,
			l.C)
	}
	mean, variance, ok := l.Along(s.Axes)
	if !ok {
		return nil, failf("start", "must be diagonal where the data's Gaussian is, in the DCT with the data's own axes of "+
			"the channels; make one of the same data with covariance dct")
	}
	out := *s
	out.Directions = slices.Clone(s.Directions)
	for i := range out.Directions {
		out.Directions[i].Start = &Along{Mean: mean[i], Variance: variance[i]}
	}
	return &out, nil
}

// Variance returns the total variance, Σ λ.
func (s *Spectrum) Variance() float64 {
	var sum float64
	for _, d := range s.Directions {
		sum += d.Variance
	}
	return sum
}

// Bands returns the directions of each subspace of a basis none or dct. Other bases
// mix frequencies and are an *Error.
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
