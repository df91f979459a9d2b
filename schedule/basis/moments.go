package basis

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// blockRows is the number of planes of one update of the scatter matrix.
const blockRows = 256

// Moments are the mean and the covariance of H×W planes, computed in one pass over them in any order. They need
// 8·(H·W)² bytes, however many planes there are.
//
// Planes are taken in blocks, each centred by its own mean. Blocks of n_a and n_b planes are joined by the update of
// Chan, Golub and LeVeque (1982),
//
//	S = S_a + S_b + n_a n_b/(n_a + n_b) δ δᵀ,   δ = mean_b − mean_a,
//
// so that a mean that is large compared with the spread costs no digits.
//
// N, Mean and Covariance, and the argument of Merge, may be used at the same time. A method that adds planes may not.
type Moments struct {
	h, w    int
	mu      sync.Mutex // of a flush, which any reading may need first
	n       int64
	mean    []float64
	scatter blas64.Symmetric // Σ (x − mean)(x − mean)ᵀ, its upper triangle
	block   []float64        // planes that are not in mean and scatter yet
	centred []float64        // scratch: a block's deviations, [H·W, planes]
}

// NewMoments returns moments without planes.
func NewMoments(h, w int) *Moments {
	d := h * w
	return &Moments{
		h: h, w: w, mean: make([]float64, d),
		scatter: blas64.Symmetric{N: d, Stride: d, Uplo: blas.Upper, Data: make([]float64, d*d)},
	}
}

// N returns the number of planes.
func (m *Moments) N() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n + int64(len(m.block)/len(m.mean))
}

// Mean returns a copy of the mean plane [H·W].
func (m *Moments) Mean() []float64 {
	m.flush()
	return slices.Clone(m.mean)
}

// Covariance returns the covariance of the planes [H·W]², divided by their number; NaN if there are none.
func (m *Moments) Covariance() *mat.SymDense {
	m.flush()
	d := len(m.mean)
	out := mat.NewSymDense(d, nil)
	for i := range d {
		for j := i; j < d; j++ {
			out.SetSym(i, j, m.scatter.Data[i*d+j]/float64(m.n))
		}
	}
	return out
}

// Add adds planes [n, H·W] of finite values. It panics for a length that is not one of whole planes.
func (m *Moments) Add(planes []float64) {
	if len(planes)%len(m.mean) != 0 {
		panic("basis: Moments.Add: a plane has H·W entries")
	}
	for len(planes) > 0 {
		n := min(len(planes), blockRows*len(m.mean)-len(m.block))
		m.block, planes = append(m.block, planes[:n]...), planes[n:]
		if len(m.block) == blockRows*len(m.mean) {
			m.flush()
		}
	}
}

// Merge adds the planes of o, which have the same size. o is not changed.
func (m *Moments) Merge(o *Moments) {
	if m.h != o.h || m.w != o.w {
		panic("basis: Moments.Merge: planes of two sizes")
	}
	m.flush()
	o.flush()
	if o.n == 0 {
		return
	}
	na, nb := float64(m.n), float64(o.n)
	delta := make([]float64, len(m.mean))
	for i := range delta {
		delta[i] = o.mean[i] - m.mean[i]
		m.mean[i] += delta[i] * nb / (na + nb)
	}
	for i, v := range o.scatter.Data {
		m.scatter.Data[i] += v
	}
	blas64.Syr(na*nb/(na+nb), blas64.Vector{N: len(delta), Inc: 1, Data: delta}, m.scatter)
	m.n += o.n
}

// stripe is the number of rows of the scatter matrix that one core updates at a time.
const stripe = 16

// flush adds the block to mean and scatter, on all cores.
func (m *Moments) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := len(m.mean)
	rows := len(m.block) / d
	if rows == 0 {
		return
	}
	if m.centred == nil {
		m.centred = make([]float64, d*blockRows)
	}
	na, nb := float64(m.n), float64(rows)
	delta := make([]float64, d) // mean of the block − mean so far
	stripes := (d + stripe - 1) / stripe
	safely.For(stripes, func(k int) {
		from, to := k*stripe, min((k+1)*stripe, d)
		var sums [stripe]float64
		for r := range rows {
			for i, v := range m.block[r*d+from : r*d+to] {
				sums[i] += v
			}
		}
		for i := from; i < to; i++ {
			mean := sums[i-from] / nb
			for r := range rows {
				m.centred[i*rows+r] = m.block[r*d+i] - mean
			}
			delta[i] = mean - m.mean[i]
			m.mean[i] += delta[i] * nb / (na + nb)
		}
	})
	column := func(i int) blas64.Vector {
		return blas64.Vector{N: rows, Inc: 1, Data: m.centred[i*rows : (i+1)*rows]}
	}
	safely.For(stripes, func(k int) {
		from, to := k*stripe, min((k+1)*stripe, d)
		for j := from; j < d; j++ { // outermost: the columns of a stripe fit a cache
			for i := from; i < min(to, j+1); i++ {
				sum := m.scatter.Data[i*d+j] + blas64.Dot(column(i), column(j))
				m.scatter.Data[i*d+j] = sum + na*nb/(na+nb)*delta[i]*delta[j]
			}
		}
	})
	m.n += int64(rows)
	m.block = m.block[:0]
}

// finite reports whether all planes were finite.
func (m *Moments) finite() bool {
	for i, v := range m.mean {
		s := m.scatter.Data[i*m.scatter.Stride+i]
		if math.IsNaN(v-v) || math.IsNaN(s-s) {
			return false
		}
	}
	return true
}

// Components are the leading principal components of planes.
type Components struct {
	Vectors   [][]float64 // [k][H·W], orthonormal
	Variances []float64   // [k], of the planes along them, falling
	Total     float64     // variance of the planes, Σ over all H·W components
}

// Share returns the part of the planes' variance that lies in the components; 0 if they have none.
func (c *Components) Share() float64 {
	if c.Total == 0 {
		return 0
	}
	var sum float64
	for _, v := range c.Variances {
		sum += v
	}
	return sum / c.Total
}
