package gaussian

import (
	"iter"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Measure returns the spectrum of images [H, W, C], rows first, in one pass. Moments
// are those of the images themselves (divided by their number). No images, images of
// another size and values that are not finite are an *Error.
func Measure[F float32 | float64](h, w, c int, images iter.Seq[[]F]) (*Spectrum, error) {
	if h < 1 || w < 1 || c < 1 {
		return nil, failf("dataset", "must hold images of positive sizes, got %d×%d pixels in %d channels", h, w, c)
	}
	m, row := basis.NewFrequencyMoments(h, w, c), make([]float64, h*w*c)
	for im := range images {
		if len(im) != len(row) {
			return nil, failf("dataset", "must hold images of %d×%d×%d = %d values, got %d in image %d", h, w, c, len(row),
				len(im), m.N())
		}
		for i, v := range im {
			row[i] = float64(v)
		}
		if m.Add(row); !m.Finite() {
			return nil, failf("dataset", "must hold finite values, got another in image %d", m.N())
		}
	}
	if m.N() == 0 {
		return nil, failf("dataset", "must hold at least one image, got none")
	}
	return spectrum(m, h, w, c)
}

// spectrum turns the channels of each frequency to the axes of their covariance, each
// axis to the side of the mean.
func spectrum(m *basis.FrequencyMoments, h, w, c int) (*Spectrum, error) {
	s := &Spectrum{H: h, W: w, C: c, Directions: make([]Direction, h*w*c), Axes: make([]float64, h*w*c*c)}
	means := m.Mean()
	cov := mat.NewSymDense(c, nil)
	var eigen mat.EigenSym
	var axes mat.Dense
	for f := range h * w {
		m.Covariance(f, cov)
		if !eigen.Factorize(cov, true) {
			return nil, failf("dataset",
				"must have covariances with eigenvalues, got none for the channels at frequency (%d, %d)", f/w, f%w)
		}
		eigen.VectorsTo(&axes)
		values := eigen.Values(nil) // increasing
		for k := range c {
			var mean float64
			for a := range c {
				mean += axes.At(a, c-1-k) * means[f*c+a]
			}
			side := 1.0
			if mean < 0 {
				side = -1
			}
			for a := range c {
				s.Axes[(f*c+k)*c+a] = side * axes.At(a, c-1-k)
			}
			s.Directions[f*c+k] = Direction{Mean: side * mean, Variance: max(0, values[c-1-k])}
		}
	}
	return s, nil
}
