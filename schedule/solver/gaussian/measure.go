package gaussian

import (
	"iter"
	"math"

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
	m := moments{
		c: c, mean: make([]float64, h*w*c), products: make([]float64, h*w*c*c),
		rows: basis.DCTRows(h, h), cols: basis.DCTRows(w, w), half: make([]float64, h*w*c),
		coef: make([]float64, h*w*c), off: make([]float64, c),
	}
	for im := range images {
		if len(im) != h*w*c {
			return nil, failf("dataset", "must hold images of %d×%d×%d = %d values, got %d in image %d", h, w, c, h*w*c, len(im),
				m.n)
		}
		transform(&m, h, w, im)
		if bad := m.add(); bad {
			return nil, failf("dataset", "must hold finite values, got another in image %d", m.n)
		}
	}
	if m.n == 0 {
		return nil, failf("dataset", "must hold at least one image, got none")
	}
	return m.spectrum(h, w)
}

// moments are the running mean of the coefficients and, at each frequency, the sums
// of products of the channels' deviations from it (Welford's recurrence).
type moments struct {
	n, c       int
	mean       []float64 // [frequency, channel]
	products   []float64 // [frequency, channel, channel]
	rows, cols []float64 // the transform along H and W
	half, coef []float64 // of the image at hand: columns transformed, and both
	off        []float64 // deviations from the old mean
}

// transform writes the coefficients of an image to m.coef.
func transform[F float32 | float64](m *moments, h, w int, im []F) {
	line := w * m.c
	clear(m.half)
	for u := range h {
		to := m.half[u*line : (u+1)*line]
		for y := range h {
			a := m.rows[u*h+y]
			for k, x := range im[y*line : (y+1)*line] {
				to[k] += a * float64(x)
			}
		}
	}
	clear(m.coef)
	for u := range h {
		for v := range w {
			to := m.coef[(u*w+v)*m.c:][:m.c]
			for x := range w {
				a := m.cols[v*w+x]
				for k, y := range m.half[u*line+x*m.c:][:m.c] {
					to[k] += a * y
				}
			}
		}
	}
}

// add takes m.coef into the moments, and reports a value that is not finite.
func (m *moments) add() (bad bool) {
	m.n++
	for f := range len(m.mean) / m.c {
		mean, x, p := m.mean[f*m.c:][:m.c], m.coef[f*m.c:][:m.c], m.products[f*m.c*m.c:]
		for a := range mean {
			m.off[a] = x[a] - mean[a]
			mean[a] += m.off[a] / float64(m.n)
			bad = bad || math.IsNaN(m.off[a]) || math.IsInf(m.off[a], 0)
		}
		for a := range mean {
			for b := range mean {
				p[a*m.c+b] += m.off[a] * (x[b] - mean[b])
			}
		}
	}
	return bad
}

// spectrum turns the channels of each frequency to the axes of their covariance.
func (m *moments) spectrum(h, w int) (*Spectrum, error) {
	s := &Spectrum{H: h, W: w, C: m.c, Directions: make([]Direction, h*w*m.c)}
	cov := mat.NewSymDense(m.c, nil)
	var eigen mat.EigenSym
	var axes mat.Dense
	for f := range h * w {
		for a := range m.c {
			for b := range a + 1 {
				cov.SetSym(a, b, m.products[(f*m.c+a)*m.c+b]/float64(m.n))
			}
		}
		if !eigen.Factorize(cov, true) {
			return nil, failf("dataset",
				"must have covariances with eigenvalues, got none for the channels at frequency (%d, %d)", f/w, f%w)
		}
		eigen.VectorsTo(&axes)
		values := eigen.Values(nil) // increasing
		for k := range m.c {
			var mean float64
			for a := range m.c {
				mean += axes.At(a, m.c-1-k) * m.mean[f*m.c+a]
			}
			s.Directions[f*m.c+k] = Direction{Mean: math.Abs(mean), Variance: max(0, values[m.c-1-k])}
		}
	}
	return s, nil
}
