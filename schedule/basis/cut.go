package basis

import "slices"

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
