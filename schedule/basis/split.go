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

// cut is a separable low-pass span: orthonormal rows along each axis, A_H [nu·H] and
// A_W [nv·W], of the DCT the first of the transform.
type cut struct {
	h, w, nu, nv int
	ah, aw       []float64
}

// functions returns the outer products of the cut's rows, [nu·nv·H·W].
func (c cut) functions() []float64 {
	v := make([]float64, 0, c.nu*c.nv*c.h*c.w)
	for u := range slices.Chunk(c.ah, c.h) {
		for x := range slices.Chunk(c.aw, c.w) {
			for _, a := range u {
				for _, b := range x {
					v = append(v, a*b)
				}
			}
		}
	}
	return v
}

// project writes Q_H x Q_W to dst.
func (c cut) project(x, dst []float64) {
	qh, qw := gram(c.ah, c.h), gram(c.aw, c.w)
	half := make([]float64, c.h*c.w) // Q_H x
	for i := range c.h {
		for k := range c.h {
			for j := range c.w {
				half[i*c.w+j] += qh[i*c.h+k] * x[k*c.w+j]
			}
		}
	}
	clear(dst)
	for i := range c.h {
		for k := range c.w {
			for j := range c.w {
				dst[i*c.w+j] += half[i*c.w+k] * qw[k*c.w+j]
			}
		}
	}
}

// gram returns AᵀA of a row-major A with n columns.
func gram(a []float64, n int) []float64 {
	q := make([]float64, n*n)
	for row := range slices.Chunk(a, n) {
		for i, ai := range row {
			for j, aj := range row {
				q[i*n+j] += ai * aj
			}
		}
	}
	return q
}
