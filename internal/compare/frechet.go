package compare

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Moments are the mean [D] and the unbiased covariance [D, D] of features.
type Moments struct {
	Mean []float64
	Cov  *mat.SymDense
}

// MomentsOf returns the moments of features [N, D], N at least 2.
func MomentsOf(features *mat.Dense) Moments {
	n, d := features.Dims()
	m := Moments{Mean: make([]float64, d), Cov: mat.NewSymDense(d, nil)}
	for i := range n {
		for j, v := range features.RawRowView(i) {
			m.Mean[j] += v / float64(n)
		}
	}
	stat.CovarianceMatrix(m.Cov, features, nil)
	return m
}

// FrechetDistance returns the squared 2-Wasserstein distance of two normal laws, the
// formula of FID (Heusel et al. 2017):
//
//	|m_a − m_b|² + tr C_a + tr C_b − 2 tr (C_a^½ C_b C_a^½)^½
//
// The roots are taken by symmetric eigendecomposition: no regularisation is needed
// and nothing becomes imaginary.
func FrechetDistance(a, b Moments) (float64, error) {
	var eigen mat.EigenSym
	if !eigen.Factorize(a.Cov, true) {
		return 0, errNoEigenvalues
	}
	var vectors, half, root, part, product mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil)
	half.Apply(func(_, j int, v float64) float64 { return v * math.Sqrt(math.Sqrt(max(0, values[j]))) }, &vectors)
	root.Mul(&half, half.T())
	part.Mul(&root, b.Cov)
	product.Mul(&part, &root)
	if !eigen.Factorize(symmetric(&product), false) {
		return 0, errNoEigenvalues
	}
	distance := mat.Trace(a.Cov) + mat.Trace(b.Cov)
	for _, v := range eigen.Values(nil) {
		distance -= 2 * math.Sqrt(max(0, v))
	}
	for i, v := range a.Mean {
		distance += (v - b.Mean[i]) * (v - b.Mean[i])
	}
	return distance, nil
}

var errNoEigenvalues = errors.New("a covariance has no eigenvalues: are the images finite?")

// symmetric returns the symmetric part of a square matrix.
func symmetric(m *mat.Dense) *mat.SymDense {
	n, _ := m.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, (m.At(i, j)+m.At(j, i))/2)
		}
	}
	return s
}
