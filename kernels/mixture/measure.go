package mixture

import (
	"fmt"
	"iter"

	"gonum.org/v1/gonum/mat"
)

// Measure returns the law of each class of labelled images [H, W, C]: its share, mean
// and covariance (divided by the number of images), in one pass. Without labels, −1
// for every image, there is one law. Memory is (H·W·C)² numbers per class.
func Measure(pixels, classes int, images iter.Seq2[[]float32, int32]) ([]Law, error) {
	sums := make([]*moments, max(classes, 1))
	for i := range sums {
		sums[i] = &moments{d: pixels, cov: mat.NewSymDense(pixels, nil), sum: make([]float64, pixels)}
	}
	for im, label := range images {
		switch {
		case classes == 0:
			label = 0
		case label < 0 || int(label) >= classes:
			return nil, fmt.Errorf("mixture: an image has label %d; every image needs one of %d classes", label, classes)
		}
		sums[label].add(im)
	}
	laws := make([]Law, len(sums))
	for label, s := range sums {
		if s.n == 0 {
			return nil, fmt.Errorf("mixture: class %d has no images", label)
		}
		laws[label] = s.law()
		laws[label].Label = label
	}
	return laws, nil
}

// moments are sums of images less the class's first, which keeps digits where the
// mean is large beside the deviations.
type moments struct {
	n, d   int
	origin []float64
	sum    []float64
	cov    *mat.SymDense // sum of products
	buffer []float64     // images not yet multiplied
}

// together is how many images are multiplied at a time.
const together = 256

func (m *moments) add(im []float32) {
	if m.n == 0 {
		m.origin = make([]float64, m.d)
		for k, v := range im {
			m.origin[k] = float64(v)
		}
	}
	m.n++
	for k, v := range im {
		x := float64(v) - m.origin[k]
		m.sum[k] += x
		m.buffer = append(m.buffer, x)
	}
	if len(m.buffer) == together*m.d {
		m.flush()
	}
}

func (m *moments) flush() {
	if n := len(m.buffer) / m.d; n > 0 {
		x := mat.NewDense(n, m.d, m.buffer)
		var products mat.SymDense
		products.SymOuterK(1, x.T())
		m.cov.AddSym(m.cov, &products)
		m.buffer = m.buffer[:0]
	}
}

func (m *moments) law() Law {
	m.flush()
	n := float64(m.n)
	l := Law{Component: Component{Weight: n}, Mean: make([]float64, m.d), Cov: make([]float64, m.d*m.d)}
	for a := range m.d {
		l.Mean[a] = m.origin[a] + m.sum[a]/n
		for b := range m.d {
			l.Cov[a*m.d+b] = m.cov.At(a, b)/n - m.sum[a]/n*m.sum[b]/n
		}
	}
	return l
}
