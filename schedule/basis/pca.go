package basis

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

var (
	pca = Definition{
		Name: "pca", Usage: "components of all images", Made: true, Principal: true,
	}
	pcaPerClass = Definition{
		Name: "pca_per_class", Usage: "of each class's own images, for its own samples", Made: true,
		Principal: true, PerClass: true,
	}
)

// Components returns the k leading principal components: eigenvectors of the covariance of the planes, or equally the
// right singular vectors of the centred table of planes. Each has the sign with which its largest entry, the first of
// several, is positive.
//
// If the planes vary in fewer than k dimensions, the rest are the DCT functions of lowest frequency, orthogonalised
// against the vectors before them. It returns an *Error if there are no planes, if they are not finite, and unless 1 ≤
// k < H·W.
func (m *Moments) Components(k int) (*Components, error) {
	m.flush()
	d := len(m.mean)
	switch {
	case k < 1 || k >= d:
		return nil, failf(Shared, -1, "k is %d; the first subspace of a %d×%d plane has 1 … %d dimensions", k, m.h, m.w, d-1)
	case m.n == 0:
		return nil, failf(Shared, -1, "there are no images to take components of")
	case !m.finite():
		return nil, failf(Shared, -1, "an image has a value that is not finite")
	}
	var eigen mat.EigenSym
	var sym mat.SymDense
	sym.SetRawSymmetric(blas64.Symmetric{N: d, Stride: d, Uplo: m.scatter.Uplo, Data: m.scatter.Data})
	if !eigen.Factorize(&sym, true) {
		return nil, failf(Shared, -1, "the eigenvectors of the covariance do not converge")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil) // rising
	c := &Components{Variances: make([]float64, k)}
	for _, v := range values {
		c.Total += max(0, v) / float64(m.n)
	}
	least := float64(d) * 1e-15 * values[d-1] // what rounding makes of zero
	for i := range k {
		v := values[d-1-i]
		if !(v > least) {
			break
		}
		c.Variances[i] = v / float64(m.n)
		vector := mat.Col(nil, d-1-i, &vectors)
		TurnUpright(vector)
		c.Vectors = append(c.Vectors, vector)
	}
	c.complete(m.h, m.w, k)
	return c, nil
}

// TurnUpright gives v the sign with which its largest entry, the first of several, is positive. Entries that differ by
// rounding count as equal. It does nothing for NaN.
func TurnUpright(v []float64) {
	least := (1 - 1e-6) * floats.Norm(v, math.Inf(1))
	if i := slices.IndexFunc(v, func(x float64) bool { return math.Abs(x) >= least }); i >= 0 && v[i] < 0 {
		floats.Scale(-1, v)
	}
}

// complete adds DCT functions until there are k vectors.
func (c *Components) complete(h, w, k int) {
	d := h * w
	for _, x := range dctFunctions(h, w) {
		if len(c.Vectors) == k {
			return
		}
		for range 2 { // twice is enough for full precision
			for _, q := range c.Vectors {
				blas64.Axpy(-dot(q, x), blas64.Vector{N: d, Inc: 1, Data: q}, blas64.Vector{N: d, Inc: 1, Data: x})
			}
		}
		// The squares of what is left of all d functions add up to d − len(c.Vectors) ≥ 2, so those passed over cannot be all
		// that is needed.
		left := math.Sqrt(dot(x, x))
		if left*left < 0.5/float64(d) {
			continue
		}
		for i := range x {
			x[i] /= left
		}
		c.Vectors = append(c.Vectors, x)
	}
}
