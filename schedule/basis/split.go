package basis

import (
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Split writes P_j x to dst[j] for one channel x [H·W]: the reference projection, in
// float64. The class label selects the vectors of a per-class basis and is ignored
// otherwise. len(dst) is J, each of its entries has H·W elements and none overlaps
// x; other lengths panic. A class without vectors is an *Error.
func (b *Basis) Split(label int, x []float64, dst [][]float64) error {
	n := b.h * b.w
	if len(x) != n || len(dst) != b.J() || slices.ContainsFunc(dst, func(d []float64) bool { return len(d) != n }) {
		panic("basis: Split: x and every dst need H·W entries, one dst per subspace")
	}
	last := dst[b.J()-1]
	switch {
	case b.cuts != nil:
		for j, c := range b.cuts {
			c.project(x, dst[j])
		}
	case b.vectors != nil:
		v, err := b.rows(label)
		if err != nil {
			return err
		}
		clear(dst[0])
		for row := range slices.Chunk(v, n) {
			c := dot(row, x)
			for i, r := range row {
				dst[0][i] += c * r
			}
		}
	}
	// dst[j] holds R_{j+1} x now; the last subspace is I − R_{J−1}, and from there
	// down P_j = R_j − R_{j−1}.
	copy(last, x)
	for j := b.J() - 1; j > 0; j-- {
		for i, r := range dst[j-1] {
			dst[j][i] -= r
		}
	}
	return nil
}

// Weighted returns Σ_j g_j P_j of a label as a matrix [H·W]², len(g) = J. A class without vectors is an
// *Error.
func (b *Basis) Weighted(label int, g []float64) (*mat.SymDense, error) {
	n := b.h * b.w
	sum, x, parts := mat.NewSymDense(n, nil), make([]float64, n), make([][]float64, b.J())
	for j := range parts {
		parts[j] = make([]float64, n)
	}
	for i := range n {
		clear(x)
		x[i] = 1
		if err := b.Split(label, x, parts); err != nil {
			return nil, err
		}
		for k := range i + 1 {
			var v float64
			for j, part := range parts {
				v += g[j] * part[k]
			}
			sum.SetSym(i, k, v)
		}
	}
	return sum, nil
}
