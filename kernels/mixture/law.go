package mixture

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Law is a component by its covariance.
type Law struct {
	Component
	Mean []float64 // [d], pixels in the order of an image
	Cov  []float64 // [d·d], symmetric
	// Blocks are orthonormal rows [m·d], together a basis of image space: only the covariance within each block is kept.
	// Nil keeps all of it.
	Blocks [][]float64
}

// Build returns the mixture of these laws and the values of its parameters. Weights and labels become the
// configuration's Components. Eigenvalues below floor are raised to it; if floor is 0, they must be positive.
func Build(c Config, laws []Law, floor float64) (*Net, [][]float32, error) {
	c.ModelType, c.Components = ModelType, nil
	for _, l := range laws {
		c.Components = append(c.Components, l.Component)
	}
	n, err := NewNet(c)
	if err != nil {
		return nil, nil, err
	}
	values := make([][]float32, 3)
	for i, l := range laws {
		if len(l.Mean) != c.Pixels() || len(l.Cov) != c.Pixels()*c.Pixels() {
			return nil, nil, fmt.Errorf("mixture: component %d has %d means and %d covariances; images of %d values need %d "+
				"and %d",
				i, len(l.Mean), len(l.Cov), c.Pixels(), c.Pixels(), c.Pixels()*c.Pixels())
		}
		variances, axes, err := l.principal(floor)
		if err != nil {
			return nil, nil, fmt.Errorf("mixture: component %d: %w", i, err)
		}
		for k, v := range [][]float64{l.Mean, variances, axes} {
			for _, x := range v {
				values[k] = append(values[k], float32(x))
			}
		}
	}
	values, err = n.Load(n.State(values)) // the same rules as for a file
	return n, values, err
}

// principal returns the variances and axes of the covariance within the blocks.
func (l Law) principal(floor float64) (variances, axes []float64, err error) {
	d := len(l.Mean)
	for a := range d {
		for b := range a {
			if x, y := l.Cov[a*d+b], l.Cov[b*d+a]; !(math.Abs(x-y) <= 1e-9*(math.Abs(x)+math.Abs(y))) {
				return nil, nil, fmt.Errorf("the covariance is not symmetric: %v at (%d, %d), %v at (%d, %d)", x, a, b, y, b, a)
			}
		}
	}
	blocks := l.Blocks
	if blocks == nil {
		rows := make([]float64, d*d)
		for i := range d {
			rows[i*d+i] = 1
		}
		blocks = [][]float64{rows}
	}
	cov := mat.NewDense(d, d, l.Cov)
	for _, rows := range blocks {
		m := len(rows) / d
		q := mat.NewDense(m, d, rows)
		var half, inner, turned mat.Dense
		half.Mul(q, cov)
		inner.Mul(&half, q.T())
		sym := mat.NewSymDense(m, nil)
		for a := range m {
			for b := range a + 1 {
				sym.SetSym(a, b, (inner.At(a, b)+inner.At(b, a))/2)
			}
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(sym, true) {
			return nil, nil, fmt.Errorf("the covariance has no eigenvalues")
		}
		var vectors mat.Dense
		eigen.VectorsTo(&vectors)
		turned.Mul(vectors.T(), q)
		for _, v := range slices.Backward(eigen.Values(nil)) {
			if floor == 0 && !(v > 0) {
				return nil, nil, fmt.Errorf("the covariance is not positive definite: it has the eigenvalue %v", v)
			}
			variances = append(variances, max(v, floor))
		}
		for a := m - 1; a >= 0; a-- {
			axes = append(axes, turned.RawRowView(a)...)
		}
	}
	return variances, axes, nil
}

// DCTBlocks returns a block for each frequency of the two-dimensional DCT: its function on each channel. Covariances
// made of them commute with every dct basis.
func DCTBlocks(h, w, channels int) [][]float64 {
	rows, cols := basis.DCTRows(h, h), basis.DCTRows(w, w)
	out := make([][]float64, 0, h*w)
	for u := range h {
		for v := range w {
			block := make([]float64, channels*h*w*channels)
			for y := range h {
				for x := range w {
					for c := range channels {
						block[((c*h+y)*w+x)*channels+c] = rows[u*h+y] * cols[v*w+x]
					}
				}
			}
			out = append(out, block)
		}
	}
	return out
}

// Measure gathers the laws of the classes of labelled images [H, W, C]. Without classes there is one law. Its memory is
// (H·W·C)² numbers per class.
type Measure struct {
	pixels, classes int
	moments         []*basis.Moments
}

// NewMeasure returns a measure of no images.
func NewMeasure(pixels, classes int) *Measure {
	m := &Measure{pixels: pixels, classes: classes, moments: make([]*basis.Moments, max(classes, 1))}
	for i := range m.moments {
		m.moments[i] = basis.NewMoments(1, pixels)
	}
	return m
}

// Add takes images [n, H, W, C] with their labels. A label that is no class is an error.
func (m *Measure) Add(labels []int32, images []float64) error {
	for i, label := range labels {
		switch {
		case m.classes == 0:
			label = 0
		case label < 0 || int(label) >= m.classes:
			return fmt.Errorf("mixture: an image has label %d; every image needs one of %d classes", label, m.classes)
		}
		m.moments[label].Add(images[i*m.pixels : (i+1)*m.pixels])
	}
	return nil
}

// Laws returns the law of each class: its number of images, their mean and their covariance, divided by their number.
func (m *Measure) Laws() ([]Law, error) {
	laws := make([]Law, len(m.moments))
	for label, s := range m.moments {
		if s.N() == 0 {
			return nil, fmt.Errorf("mixture: class %d has no images", label)
		}
		laws[label] = Law{
			Component: Component{Weight: float64(s.N()), Label: label}, Mean: s.Mean(),
			Cov: mat.DenseCopyOf(s.Covariance()).RawMatrix().Data,
		}
		m.moments[label] = nil // its memory is free for the next
	}
	return laws, nil
}
