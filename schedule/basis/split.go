package basis

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Split writes P_j x to dst[j] for one channel x [H·W]. This is the reference projection. label selects the vectors of
// a per-class basis and has no effect otherwise. It panics unless len(dst) is J and every dst[j] has H·W values; none
// may overlap x. It returns an *Error for a class without vectors.
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
	// dst[j] holds R_{j+1} x now; the last subspace is I − R_{J−1}, and from there down P_j = R_j − R_{j−1}.
	copy(last, x)
	for j := b.J() - 1; j > 0; j-- {
		for i, r := range dst[j-1] {
			dst[j][i] -= r
		}
	}
	return nil
}

// Weighted returns the matrix Σ_j g_j P_j of a label, [H·W]², for g [J]. It returns an *Error for a class without
// vectors.
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

// cut is a separable low-pass span with orthonormal rows along each axis, A_H [nu·H] and A_W [nv·W].
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

// orthonormalTolerance is how far ⟨v_i, v_j⟩ may be from δ_ij: vectors that were float32 once pass.
const orthonormalTolerance = 1e-6

// Dense returns the basis of two subspaces whose first is spanned by v[label][i], each of length H·W: orthonormal
// within 1e-6, and as many for every label. The only label is Shared, or all labels are classes from 0. The vectors are
// copied. An *Error names the label and the vector that break a rule.
func Dense(h, w int, v map[int][][]float64) (*Basis, error) {
	labels := slices.Sorted(maps.Keys(v))
	groups, vectors := make([][]int, len(labels)), make([][][]float64, len(labels))
	for i, label := range labels {
		groups[i], vectors[i] = []int{label}, v[label]
	}
	return Clusters(h, w, groups, vectors)
}

// Clusters is Dense with one set of vectors v[i][row] for all labels of clusters[i]. A label belongs to one cluster.
func Clusters(h, w int, clusters [][]int, v [][][]float64) (*Basis, error) {
	switch {
	case h < 1 || w < 1:
		return nil, failf(Shared, -1, "a %d×%d plane has no subspaces", h, w)
	case len(clusters) == 0:
		return nil, failf(Shared, -1, "no vectors were given")
	}
	b := &Basis{kind: KindDense, h: h, w: w, groupOf: map[int]int{}}
	k := len(v[0])
	for i, labels := range clusters {
		if len(labels) == 0 {
			return nil, failf(Shared, -1, "cluster %d has no labels", i)
		}
		first := labels[0]
		for _, label := range labels {
			if label < Shared {
				return nil, failf(label, -1, "label is %d; it must be −1 (shared) or a class from 0", label)
			}
			if _, twice := b.groupOf[label]; twice {
				return nil, failf(label, -1, "label %d stands in two clusters", label)
			}
			b.groupOf[label] = i
		}
		switch rows := len(v[i]); {
		case rows < 1 || rows >= h*w:
			return nil, failf(first, -1, "%d vectors for a %d×%d plane; the first subspace needs 1 … %d of them", rows, h, w,
				h*w-1)
		case rows != k:
			return nil, failf(first, -1, "label %d has %d vectors, label %d has %d; all need the same number", first, rows,
				clusters[0][0], k)
		}
		if err := checkOrthonormal(first, h*w, v[i]); err != nil {
			return nil, err
		}
		b.groups = append(b.groups, slices.Sorted(slices.Values(labels)))
		b.vectors = append(b.vectors, slices.Concat(v[i]...))
	}
	if _, shared := b.groupOf[Shared]; shared && len(b.groupOf) > 1 {
		return nil, failf(Shared, -1, "a basis is either shared (label −1) or per class, not both")
	}
	b.dims = []int{k, h*w - k}
	return b, nil
}

func checkOrthonormal(label, n int, rows [][]float64) error {
	for i, row := range rows {
		if len(row) != n {
			return failf(label, i, "%d entries, the plane has %d", len(row), n)
		}
	}
	i, j, product, ok := Orthonormal(rows)
	switch {
	case ok:
		return nil
	case i == j:
		return failf(label, i, "its length is %v; vectors must be orthonormal within %v", math.Sqrt(product),
			orthonormalTolerance)
	}
	return failf(label, i, "its product with vector %d is %v; vectors must be orthonormal within %v", j, product,
		orthonormalTolerance)
}

// Orthonormal reports whether rows of one length are orthonormal within 1e-6. If not, it returns the first i ≥ j whose
// product is wrong, and that product.
func Orthonormal(rows [][]float64) (i, j int, product float64, ok bool) {
	for i, a := range rows {
		for j, b := range rows[:i+1] {
			want := 0.0
			if i == j {
				want = 1
			}
			if p := dot(a, b); !(math.Abs(p-want) <= orthonormalTolerance) {
				return i, j, p, false
			}
		}
	}
	return 0, 0, 0, true
}

func dot(a, b []float64) float64 {
	var s float64
	for i, v := range a {
		s += v * b[i]
	}
	return s
}
