package gaussian

import (
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Direction is a direction of image space in which the data is normal.
type Direction struct {
	Mean     float64 // not negative: a direction has no sign
	Variance float64
}

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
