package basis

import (
	"errors"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// FrequencyMoments are the mean of the coefficients of images and, at each frequency, the covariance of the channels,
// gathered in one pass (Welford's recurrence). Its memory is that of C+1 images, however many there are: what
// correlates two frequencies is left out.
type FrequencyMoments struct {
	f        *Frequencies // the channels are their own axes
	n        int64
	mean     []float64 // [frequency, channel]
	products []float64 // [frequency, channel, channel]: sums of products of deviations
	coef     []float64 // of the image at hand
	off      []float64 // its deviations from the old mean, at one frequency
}

// NewFrequencyMoments returns the moments of no images. It panics unless the sizes are positive.
func NewFrequencyMoments(h, w, c int) *FrequencyMoments {
	f := NewFrequencies(h, w, c, nil)
	return &FrequencyMoments{
		f: f, mean: make([]float64, f.Size()), products: make([]float64, f.Size()*c),
		coef: make([]float64, f.Size()), off: make([]float64, c),
	}
}

// N returns the number of images.
func (m *FrequencyMoments) N() int64 { return m.n }

// Dims returns the images' height, width and channels.
func (m *FrequencyMoments) Dims() (h, w, c int) { return m.f.h, m.f.w, m.f.c }

// Check reports moments of no images, or of values that are not finite.
func (m *FrequencyMoments) Check() error {
	if m.n == 0 {
		return errors.New("must hold at least one image, got none")
	}
	for _, v := range m.mean {
		if v-v != 0 {
			return errors.New("must hold finite values")
		}
	}
	return nil
}

// Add takes one image [H, W, C]; another length panics.
func (m *FrequencyMoments) Add(x []float64) {
	m.f.Forward(m.coef, x)
	m.n++
	c := m.f.c
	for f := range len(m.mean) / c {
		mean, x, p := m.mean[f*c:][:c], m.coef[f*c:][:c], m.products[f*c*c:]
		for a := range mean {
			m.off[a] = x[a] - mean[a]
			mean[a] += m.off[a] / float64(m.n)
		}
		for a := range mean {
			for b := range mean {
				p[a*c+b] += m.off[a] * (x[b] - mean[b])
			}
		}
	}
}

// Merge takes the images of o, of the same size, which it leaves as they are.
func (m *FrequencyMoments) Merge(o *FrequencyMoments) {
	if len(m.mean) != len(o.mean) || len(m.products) != len(o.products) {
		panic("basis: FrequencyMoments.Merge: images of two sizes")
	}
	if o.n == 0 {
		return
	}
	na, nb, c := float64(m.n), float64(o.n), m.f.c
	for i, v := range o.mean {
		m.coef[i] = v - m.mean[i]
		m.mean[i] += m.coef[i] * nb / (na + nb)
	}
	for f := range len(m.mean) / c {
		for a := range c {
			for b := range c {
				m.products[(f*c+a)*c+b] += o.products[(f*c+a)*c+b] +
					na*nb/(na+nb)*m.coef[f*c+a]*m.coef[f*c+b]
			}
		}
	}
	m.n += o.n
}

// Mean returns a copy of the mean of the coefficients, [H·W·C].
func (m *FrequencyMoments) Mean() []float64 { return slices.Clone(m.mean) }

// Covariance writes the covariance of the channels at a frequency to dst [C, C], divided by the number of images; that
// of none is NaN.
func (m *FrequencyMoments) Covariance(frequency int, dst *mat.SymDense) {
	c := m.f.c
	for a := range c {
		for b := range a + 1 {
			dst.SetSym(a, b, m.products[(frequency*c+a)*c+b]/float64(m.n))
		}
	}
}
