package kernels_test

import (
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// vectorsOf returns the vectors of classBasis by class, renamed by a permutation.
func vectorsOf(t *testing.T, name []int) map[int][][]float64 {
	t.Helper()
	b := classBasis(t, false)
	v := map[int][][]float64{}
	for label := range toyLabels {
		flat, err := b.Vectors(label)
		if err != nil {
			t.Fatal(err)
		}
		v[name[label]] = slices.Collect(slices.Chunk(flat, toySide*toySide))
	}
	return v
}

func dense(t *testing.T, v map[int][][]float64) *basis.Basis {
	t.Helper()
	b, err := basis.Dense(toySide, toySide, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// labelled draws a batch in which every class occurs.
func labelled(seed uint64, n, j int) kernels.EstimateInput64 {
	in := toyBatch(seed, n, j)
	for i := range in.Labels {
		in.Labels[i] = int32((i*2 + 1) % toyLabels)
	}
	return in
}

var termsByName = map[string]func(*kernels.Terms) []float64{
	"residual":   func(t *kernels.Terms) []float64 { return t.Residual },
	"explicit x": func(t *kernels.Terms) []float64 { return t.ExplicitX },
	"implicit 1": func(t *kernels.Terms) []float64 { return t.Implicit1 },
	"implicit 2": func(t *kernels.Terms) []float64 { return t.Implicit2 },
	"implicit 3": func(t *kernels.Terms) []float64 { return t.Implicit3 },
}

// TestOwnBasis: each sample is split by its own class's vectors, as by a shared basis of these vectors.
func TestOwnBasis(t *testing.T) {
	all := vectorsOf(t, []int{0, 1, 2})
	in := labelled(31, 6, 2)
	in.Mode = kernels.Full
	m, w := model64(t, toy{}, dense(t, all), toy{}.values(3))
	got := estimate64(t, m, w, in)
	for label := range toyLabels {
		m, w := model64(t, toy{}, dense(t, map[int][][]float64{basis.Shared: all[label]}), toy{}.values(3))
		alone := estimate64(t, m, w, in)
		for i, l := range in.Labels {
			for name, term := range termsByName {
				a, b := term(got)[2*i:2*i+2], term(alone)[2*i:2*i+2]
				if int(l) == label {
					expect(t, name, a, b, 1e-9)
				} else if name == "residual" && slices.Equal(a, b) {
					t.Errorf("sample %d of class %d is split by class %d", i, l, label)
				}
			}
		}
	}
}
