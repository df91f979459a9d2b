package basis

import (
	"slices"
	"testing"
)

// P_1 of the Haar basis replaces every block of pixels by its mean.
func TestHaarIsTheMeanOfBlocks(t *testing.T) {
	for _, q := range []struct{ h, w, k, side int }{
		{4, 6, 0, 2},
		{8, 8, 16, 2},
		{8, 8, 4, 4},
		{8, 8, 1, 8},
		{4, 12, 3, 4},
	} {
		b := must(t)(Haar(q.h, q.w, q.k))
		if b.K() != q.h/q.side*(q.w/q.side) || b.Kind() != KindHaar {
			t.Errorf("%d×%d, k = %d: %s of %d dimensions", q.h, q.w, q.k, b.Kind(), b.K())
		}
		x := random(4, q.h*q.w)
		want := make([]float64, q.h*q.w)
		at := func(y, x int) int { return y*q.w + x }
		for i := range q.h {
			for j := range q.w {
				for y := range q.side {
					for z := range q.side {
						want[at(i, j)] += x[at(i/q.side*q.side+y, j/q.side*q.side+z)] / float64(q.side*q.side)
					}
				}
			}
		}
		if d := gap(split(t, b, Shared, x)[0], want); d > 1e-12 {
			t.Errorf("%d×%d, k = %d: off by %.1e", q.h, q.w, q.k, d)
		}
	}
}

func TestFormula(t *testing.T) {
	dct := must(t)(DCT(8, 8, 9))
	bands := must(t)(DCTBands(8, 8, 2, 4))
	haar := must(t)(Haar(8, 8, 4))
	for _, q := range []struct {
		name string
		k    int
		cuts []int
		want *Basis
	}{{"none", 0, nil, None(8, 8)}, {"dct", 9, nil, dct}, {"dct", 0, []int{2, 4}, bands}, {"haar", 4, nil, haar}} {
		b, ok, err := Formula(q.name, 8, 8, q.k, q.cuts)
		if !ok || err != nil || b.Kind() != q.want.Kind() || !slices.Equal(b.Dims(), q.want.Dims()) {
			t.Errorf("%s, k = %d, cuts %v: %v, %v, %v", q.name, q.k, q.cuts, b, ok, err)
		}
	}
	if _, ok, err := Formula("pca", 8, 8, 0, nil); ok || err != nil {
		t.Error("pca is given by a formula")
	}
}
