package basis

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// FrequencyMoments are the mean of the coefficients of images and the covariance of the channels at each frequency,
// computed in one pass by Welford's recurrence. They need the memory of (C+3)/2 images: correlations between
// frequencies are left out.
type FrequencyMoments struct {
	f        *Frequencies // the channels are their own axes
	n        int64
	mean     []float64 // [channel, frequency]
	products []float64 // sums of products of the deviations of channels a ≥ b, [a(a+1)/2 + b, frequency]
}

// NewFrequencyMoments returns the moments of no images. It panics unless the sizes are positive.
func NewFrequencyMoments(h, w, c int) *FrequencyMoments {
	f := NewFrequencies(h, w, c, nil)
	return &FrequencyMoments{f: f, mean: make([]float64, f.Size()), products: make([]float64, f.Size()*(c+1)/2)}
}

// N returns the number of images.
func (m *FrequencyMoments) N() int64 { return m.n }

// Dims returns the images' height, width and channels.
func (m *FrequencyMoments) Dims() (h, w, c int) { return m.f.h, m.f.w, m.f.c }

// Check returns an error if there are no images, or values that are not finite.
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

// Add adds images [n, H, W, C], on all cores. It panics for a length that is not one of whole images.
func (m *FrequencyMoments) Add(images []float64) {
	size := m.f.Size()
	AddImages(slices.Repeat([]*FrequencyMoments{m}, (len(images)+size-1)/size), images)
}

const (
	// blockNumbers is the number of coefficients that AddImages keeps at a time, those of at least one image.
	blockNumbers = 1 << 20
	// frequencyStripe is the number of frequencies that one core takes at a time.
	frequencyStripe = 32
)

// coefficients has the blocks of AddImages.
var coefficients = sync.Pool{New: func() any { return new([]float64) }}

// AddImages adds each of the images [n, H, W, C] to moments of their size, images[i] to moments[i] unless that is nil.
// It works on all cores; the bits are those of adding one image after the other.
func AddImages(moments []*FrequencyMoments, images []float64) {
	i := slices.IndexFunc(moments, func(m *FrequencyMoments) bool { return m != nil })
	if i < 0 {
		return
	}
	f := moments[i].f
	size, line := f.Size(), f.h*f.w
	if len(images) != len(moments)*size {
		panic(fmt.Sprintf("basis: AddImages: %d values in %d images of %d", len(images), len(moments), size))
	}
	block := coefficients.Get().(*[]float64)
	defer coefficients.Put(block)
	for most := max(1, blockNumbers/size); len(moments) > 0; {
		n := min(most, len(moments))
		*block = slices.Grow((*block)[:0], n*size)[:n*size]
		safely.For(n, func(i int) {
			if moments[i] != nil {
				scratch := f.scratch.Get().(*[2][]float64)
				f.planes((*block)[i*size:(i+1)*size], images[i*size:(i+1)*size], f.h, f.w, scratch[0])
				f.scratch.Put(scratch)
			}
		})
		counts := make([]float64, n)
		for i, m := range moments[:n] {
			if m != nil {
				m.n++
				counts[i] = float64(m.n)
			}
		}
		safely.For((line+frequencyStripe-1)/frequencyStripe, func(stripe int) {
			from := stripe * frequencyStripe
			width := min(frequencyStripe, line-from)
			before, after := make([]float64, f.c*width), make([]float64, f.c*width)
			for i, m := range moments[:n] {
				if m != nil {
					m.add((*block)[i*size:(i+1)*size], from, counts[i], before, after)
				}
			}
		})
		moments, images = moments[n:], images[n*size:]
	}
}

// add adds the n-th image's coefficients x [C, H·W] at the frequencies from … on. before and after are scratch [C,
// frequencies]: deviations from the mean before and after this image.
func (m *FrequencyMoments) add(x []float64, from int, n float64, before, after []float64) {
	c, line := m.f.c, m.f.h*m.f.w
	width := len(before) / c
	for a := range c {
		mean, x := m.mean[a*line+from:][:width], x[a*line+from:][:width]
		before, rest := before[a*width:][:width], after[a*width:][:width]
		for i, v := range x {
			off := v - mean[i]
			mean[i] += off / n
			before[i], rest[i] = off, v-mean[i]
		}
		for b := range a + 1 {
			p, after := m.products[(a*(a+1)/2+b)*line+from:][:width], after[b*width:][:width]
			for i, off := range before {
				p[i] += off * after[i]
			}
		}
	}
}

// Merge adds the images of o, which have the same size. o is not changed.
func (m *FrequencyMoments) Merge(o *FrequencyMoments) {
	if len(m.mean) != len(o.mean) || len(m.products) != len(o.products) {
		panic("basis: FrequencyMoments.Merge: images of two sizes")
	}
	if o.n == 0 {
		return
	}
	na, nb, line := float64(m.n), float64(o.n), m.f.h*m.f.w
	delta := make([]float64, len(m.mean))
	for i, v := range o.mean {
		delta[i] = v - m.mean[i]
		m.mean[i] += delta[i] * nb / (na + nb)
	}
	for pair, a := 0, 0; a < m.f.c; a++ {
		for b := range a + 1 {
			for f := range line {
				m.products[pair*line+f] += o.products[pair*line+f] + na*nb/(na+nb)*delta[a*line+f]*delta[b*line+f]
			}
			pair++
		}
	}
	m.n += o.n
}

// Mean returns a copy of the mean of the coefficients [H·W·C].
func (m *FrequencyMoments) Mean() []float64 {
	mean := make([]float64, len(m.mean))
	transpose(mean, m.mean, m.f.c, m.f.h*m.f.w)
	return mean
}

// Covariance writes the covariance of the channels at a frequency to dst [C, C], divided by the number of images; NaN
// if there are none.
func (m *FrequencyMoments) Covariance(frequency int, dst *mat.SymDense) {
	for a := range m.f.c {
		for b := range a + 1 {
			dst.SetSym(a, b, m.products[(a*(a+1)/2+b)*m.f.h*m.f.w+frequency]/float64(m.n))
		}
	}
}

// InBands returns moments of one column of as many frequencies as there are bands: the mean covariance of each band's
// frequencies, and means of 0.
func (m *FrequencyMoments) InBands(bands Bands) *FrequencyMoments {
	band, count := bands.Index()
	out := NewFrequencyMoments(count, 1, m.f.c)
	out.n = m.n
	frequencies := make([]float64, count)
	for _, b := range band {
		frequencies[b]++
	}
	for i, v := range m.products {
		b := band[i%len(band)]
		out.products[i/len(band)*count+b] += v / frequencies[b]
	}
	return out
}
