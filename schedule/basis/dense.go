package basis

import (
	"maps"
	"math"
	"slices"
)

// orthonormalTolerance is how far ⟨v_i, v_j⟩ may be from δ_ij: vectors that were
// float32 once pass.
const orthonormalTolerance = 1e-6

// Dense returns the basis of two subspaces whose first is spanned by a user's
// vectors, v[label][i] of length H·W: orthonormal within 1e-6 and as many for every
// label. The only label is Shared, or else labels are classes from 0. The vectors
// are copied. An *Error names the label and vector that break a rule.
func Dense(h, w int, v map[int][][]float64) (*Basis, error) {
	labels := slices.Sorted(maps.Keys(v))
	groups, vectors := make([][]int, len(labels)), make([][][]float64, len(labels))
	for i, label := range labels {
		groups[i], vectors[i] = []int{label}, v[label]
	}
	return Clusters(h, w, groups, vectors)
}

// Clusters is Dense with one set of vectors, v[i][row], for all the labels of each
// cluster. A label belongs to one cluster.
func Clusters(h, w int, clusters [][]int, v [][][]float64) (*Basis, error) {
	switch {
	case h < 1 || w < 1:
		return nil, failf(Shared, -1, "a %d×%d plane has no subspaces", h, w)
	case len(clusters) == 0:
		return nil, failf(Shared, -1, "no vectors were given")
	case len(clusters) != len(v):
		return nil, failf(Shared, -1, "%d clusters of labels for %d sets of vectors", len(clusters), len(v))
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
	for i, a := range rows {
		if len(a) != n {
			return failf(label, i, "%d entries, the plane has %d", len(a), n)
		}
		for j, b := range rows[:i+1] {
			want := 0.0
			if i == j {
				want = 1
			}
			got := dot(a, b)
			switch {
			case math.Abs(got-want) <= orthonormalTolerance:
			case i == j:
				return failf(label, i, "its length is %v; vectors must be orthonormal within %v", math.Sqrt(got),
					orthonormalTolerance)
			default:
				return failf(label, i, "its product with vector %d is %v; vectors must be orthonormal within %v", j, got,
					orthonormalTolerance)
			}
		}
	}
	return nil
}

func dot(a, b []float64) float64 {
	var s float64
	for i, v := range a {
		s += v * b[i]
	}
	return s
}
