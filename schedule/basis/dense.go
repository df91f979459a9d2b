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
	if h < 1 || w < 1 {
		return nil, failf(Shared, -1, "a %d×%d plane has no subspaces", h, w)
	}
	if len(v) == 0 {
		return nil, failf(Shared, -1, "no vectors were given")
	}
	labels := slices.Sorted(maps.Keys(v))
	if labels[0] < Shared {
		return nil, failf(labels[0], -1, "label is %d; it must be −1 (shared) or a class from 0", labels[0])
	}
	if labels[0] == Shared && len(v) > 1 {
		return nil, failf(Shared, -1, "a basis is either shared (label −1) or per class, not both")
	}
	k := len(v[labels[0]])
	if k < 1 || k >= h*w {
		return nil, failf(labels[0], -1, "%d vectors for a %d×%d plane; the first subspace needs 1 … %d of them", k, h, w, h*w-1)
	}
	b := &Basis{kind: KindDense, h: h, w: w, dims: []int{k, h*w - k}, vectors: map[int][]float64{}}
	for _, label := range labels {
		if len(v[label]) != k {
			return nil, failf(label, -1, "label %d has %d vectors, label %d has %d; all need the same number", label, len(v[label]), labels[0], k)
		}
		if err := checkOrthonormal(label, h*w, v[label]); err != nil {
			return nil, err
		}
		b.vectors[label] = slices.Concat(v[label]...)
	}
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
				return failf(label, i, "its length is %v; vectors must be orthonormal within %v", math.Sqrt(got), orthonormalTolerance)
			default:
				return failf(label, i, "its product with vector %d is %v; vectors must be orthonormal within %v", j, got, orthonormalTolerance)
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
