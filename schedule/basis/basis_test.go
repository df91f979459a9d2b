package basis

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
)

func random(seed uint64, n int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// orthonormal returns k random orthonormal rows of length n.
func orthonormal(seed uint64, k, n int) [][]float64 {
	var rows [][]float64
	for i := range k {
		x := random(seed+uint64(1000*i), n)
		for range 2 { // twice is enough for full precision
			for _, r := range rows {
				c := dot(r, x)
				for q := range x {
					x[q] -= c * r[q]
				}
			}
		}
		l := math.Sqrt(dot(x, x))
		for q := range x {
			x[q] /= l
		}
		rows = append(rows, x)
	}
	return rows
}

func split(t *testing.T, b *Basis, label int, x []float64) [][]float64 {
	t.Helper()
	dst := make([][]float64, b.J())
	for j := range dst {
		dst[j] = random(99, len(x)) // stale values must not matter
	}
	if err := b.Split(label, x, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// must returns a function that returns a basis, or ends the test with its error.
func must(t *testing.T) func(*Basis, error) *Basis {
	t.Helper()
	return func(b *Basis, err error) *Basis {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

func norm(x []float64) float64 { return math.Sqrt(dot(x, x)) }

func gap(a, b []float64) float64 {
	d := slices.Clone(a)
	for i := range d {
		d[i] -= b[i]
	}
	return norm(d)
}

// every is one basis of each kind and shape, with label 7.
func every(t *testing.T) map[string]*Basis {
	t.Helper()
	must := must(t)
	return map[string]*Basis{
		"none":                    None(4, 6),
		"dct default":             must(DCT(8, 8, 0)),
		"dct k=4":                 must(DCT(8, 8, 4)),
		"dct, not square":         must(DCT(6, 10, 0)),
		"dct, odd sizes":          must(DCT(5, 7, 9)),
		"dct, four bands":         must(DCTBands(8, 8, 1, 2, 4)),
		"dct, a cut above height": must(DCTBands(4, 8, 2, 6)),
		"dense":                   must(Dense(4, 6, map[int][][]float64{Shared: orthonormal(1, 5, 24)})),
		"dense per class": must(Dense(4, 6, map[int][][]float64{
			3: orthonormal(2, 5, 24), 7: orthonormal(3, 5, 24),
		})),
		"dense per cluster": must(Clusters(4, 6, [][]int{{8, 3}, {7}}, [][][]float64{
			orthonormal(4, 5, 24), orthonormal(5, 5, 24),
		})),
		"haar": must(Haar(4, 6, 0)),
	}
}

// The projectors are symmetric, idempotent, mutually orthogonal, sum to the identity, and have the ranks that a basis
// states.
func TestProjectorLaws(t *testing.T) {
	const tol = 1e-12
	for name, b := range every(t) {
		t.Run(name, func(t *testing.T) {
			n, label := b.H()*b.W(), 7
			x, y := random(5, n), random(6, n)
			px, py := split(t, b, label, x), split(t, b, label, y)
			sum := make([]float64, n)
			for j := range b.J() {
				for i, v := range px[j] {
					sum[i] += v
				}
				for k, twice := range split(t, b, label, px[j]) {
					want := make([]float64, n)
					if k == j {
						want = px[j]
					}
					if d := gap(twice, want); d > tol {
						t.Errorf("P_%d P_%d is off by %.1e", k+1, j+1, d)
					}
				}
				if d := math.Abs(dot(px[j], y) - dot(x, py[j])); d > tol {
					t.Errorf("P_%d is not symmetric: %.1e", j+1, d)
				}
			}
			if d := gap(sum, x); d > tol {
				t.Errorf("the projections sum to x only within %.1e", d)
			}
			for j, dim := range b.dims { // trace = Σ_i e_iᵀ P e_i
				var trace float64
				for i := range n {
					e := make([]float64, n)
					e[i] = 1
					trace += split(t, b, label, e)[j][i]
				}
				if math.Abs(trace-float64(dim)) > 1e-9 {
					t.Errorf("P_%d has trace %v, want %d", j+1, trace, dim)
				}
			}
		})
	}
}

// Two bases of one image size with equal dimensions differ in their names.
func TestString(t *testing.T) {
	wide := must(t)(DCT(4, 16, 0))
	square := must(t)(DCT(4, 16, 16))
	if wide.String() != "dct[2×8 of 4×16]" || square.String() != "dct[4×4 of 4×16]" || None(2, 2).String() != "none[4]" {
		t.Errorf("%s, %s, %s", wide, square, None(2, 2))
	}
}

// P_1 is the span of Vectors, whatever form the basis computes it in.
func TestVectorsSpanP1(t *testing.T) {
	for name, b := range every(t) {
		v, err := b.Vectors(7)
		if b.Kind() == KindNone {
			if err == nil {
				t.Error("basis none has vectors")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n := b.H() * b.W()
		if len(v) != b.K()*n {
			t.Fatalf("%s: %d numbers, want %d vectors", name, len(v), b.K())
		}
		x := random(8, n)
		want := make([]float64, n)
		for row := range slices.Chunk(v, n) {
			c := dot(row, x)
			for i, r := range row {
				want[i] += c * r
			}
		}
		if d := gap(split(t, b, 7, x)[0], want); d > 1e-12 {
			t.Errorf("%s: off by %.1e", name, d)
		}
	}
}

// R_j = Q_H X Q_W for the nested spans of a separable basis.
func TestSeparable(t *testing.T) {
	b := must(t)(DCTBands(6, 8, 2, 3, 7))
	x := random(9, 48)
	p := split(t, b, Shared, x)
	nested := make([]float64, 48)
	for c := range b.J() - 1 {
		for i, v := range p[c] {
			nested[i] += v
		}
		qh, qw, ok := b.Separable(c)
		if !ok || len(qh) != 36 || len(qw) != 64 {
			t.Fatalf("cut %d: factors of %d and %d numbers", c, len(qh), len(qw))
		}
		got := make([]float64, 48)
		for i := range 6 {
			for j := range 8 {
				for k := range 6 {
					for l := range 8 {
						got[i*8+j] += qh[i*6+k] * x[k*8+l] * qw[l*8+j]
					}
				}
			}
		}
		if d := gap(got, nested); d > 1e-12 {
			t.Errorf("cut %d is off by %.1e", c, d)
		}
	}
	if _, _, ok := b.Separable(3); ok {
		t.Error("there is no fourth cut")
	}
	dense := must(t)(Dense(2, 2, map[int][][]float64{Shared: {{1, 0, 0, 0}}}))
	for _, b := range []*Basis{None(4, 4), dense} {
		if _, _, ok := b.Separable(0); ok {
			t.Errorf("basis %s is not separable", b.Kind())
		}
	}
}

func TestFixtureBases(t *testing.T) {
	c := fixtures.Load(t, "bases")
	b := must(t)(DCT(16, 16, 0))
	v, err := b.Vectors(Shared)
	if err != nil {
		t.Fatal(err)
	}
	want := c.F64("dct")
	if len(v) != len(want) || b.K() != 64 {
		t.Fatalf("%d numbers for k = %d, want %d", len(v), b.K(), len(want))
	}
	if d := fixtures.RelMax(v, want); d > 1e-12 {
		t.Errorf("DCT functions differ by %.1e", d)
	}
	same := must(t)(DCT(16, 16, 64))
	if other, _ := same.Vectors(Shared); !slices.Equal(other, v) {
		t.Error("k = 64 is not the default of a 16×16 plane")
	}
	rows := slices.Collect(slices.Chunk(c.F64("pca"), 256))
	if _, err := Dense(16, 16, map[int][][]float64{Shared: rows}); err != nil {
		t.Errorf("the random basis is refused: %v", err)
	}
}

// The classes of a cluster share vectors, and Groups tells which.
func TestClusters(t *testing.T) {
	b := must(t)(Clusters(4, 6, [][]int{{8, 3}, {7}}, [][][]float64{orthonormal(4, 5, 24), orthonormal(5, 5, 24)}))
	if !slices.Equal(b.Classes(), []int{3, 7, 8}) || !slices.EqualFunc(b.Groups(), [][]int{{3, 8}, {7}}, slices.Equal) {
		t.Errorf("classes %v, groups %v", b.Classes(), b.Groups())
	}
	x := random(5, 24)
	if !slices.Equal(split(t, b, 3, x)[0], split(t, b, 8, x)[0]) ||
		slices.Equal(split(t, b, 3, x)[0], split(t, b, 7, x)[0]) {
		t.Error("labels 3 and 8 share a subspace, 7 has another")
	}
	if None(4, 6).Groups() != nil {
		t.Error("basis none has vectors")
	}
}

func TestPerClass(t *testing.T) {
	a, c := orthonormal(2, 5, 24), orthonormal(3, 5, 24)
	b := must(t)(Dense(4, 6, map[int][][]float64{7: c, 3: a}))
	if !b.PerClass() || !slices.Equal(b.Classes(), []int{3, 7}) {
		t.Errorf("classes %v", b.Classes())
	}
	x := random(5, 24)
	if gap(split(t, b, 3, x)[0], split(t, b, 7, x)[0]) < 0.1 {
		t.Error("two classes share a subspace")
	}
	for _, label := range []int{Shared, 4} {
		var bad *Error
		if err := b.Split(label, x, [][]float64{make([]float64, 24), make([]float64, 24)}); !errors.As(err, &bad) {
			t.Errorf("label %d: %v", label, err)
		}
		if _, err := b.Vectors(label); !errors.As(err, &bad) {
			t.Errorf("label %d: %v", label, err)
		}
	}
	a[0][0] = 99 // the basis keeps its own copy
	if v, _ := b.Vectors(3); v[0] == 99 {
		t.Error("the caller's vectors are shared")
	}
	v, _ := b.Vectors(3)
	v[0] = 99
	if w, _ := b.Vectors(3); w[0] == 99 {
		t.Error("the basis's vectors are handed out")
	}
}

func TestRefused(t *testing.T) {
	rows := orthonormal(1, 3, 16)
	long := slices.Clone(rows)
	long[1] = append(slices.Clone(rows[1]), 0)
	stretched := slices.Clone(rows)
	stretched[2] = make([]float64, 16)
	for i, v := range rows[2] {
		stretched[2][i] = v * (1 + 1e-5)
	}
	skew := slices.Clone(rows)
	skew[2] = rows[0]
	nan := slices.Clone(rows)
	nan[1] = append([]float64{math.NaN()}, rows[1][1:]...)
	dense := func(v map[int][][]float64) func() (*Basis, error) {
		return func() (*Basis, error) { return Dense(4, 4, v) }
	}
	clusters := func(labels [][]int, v ...[][]float64) func() (*Basis, error) {
		return func() (*Basis, error) { return Clusters(4, 4, labels, v) }
	}
	formula := func(name string, k int, cuts ...int) func() (*Basis, error) {
		return func() (*Basis, error) { b, _, err := Formula(name, 8, 8, k, cuts); return b, err }
	}
	for _, q := range []struct {
		name       string
		make       func() (*Basis, error)
		label, row int
		says       string
	}{
		{"k no square", func() (*Basis, error) { return DCT(8, 8, 5) }, Shared, -1, "perfect square"},
		{"negative k", func() (*Basis, error) { return DCT(8, 8, -4) }, Shared, -1, "perfect square"},
		{"k too large", func() (*Basis, error) { return DCT(8, 8, 100) }, Shared, -1, "outside"},
		{"everything", func() (*Basis, error) { return DCT(8, 8, 64) }, Shared, -1, "nothing is left"},
		{"one pixel", func() (*Basis, error) { return DCT(1, 8, 0) }, Shared, -1, "basis none"},
		{"no plane", func() (*Basis, error) { return DCTBands(0, 8, 1) }, Shared, -1, "no frequencies"},
		{"no cuts", func() (*Basis, error) { return DCTBands(8, 8) }, Shared, -1, "no cuts"},
		{"falling cuts", func() (*Basis, error) { return DCTBands(8, 8, 3, 3) }, Shared, -1, "increase"},
		{"no vectors", dense(nil), Shared, -1, "no vectors"},
		{"no rows", dense(map[int][][]float64{2: nil}), 2, -1, "1 … 15"},
		{"all rows", func() (*Basis, error) { return Dense(1, 3, map[int][][]float64{2: rows}) }, 2, -1, "1 … 2"},
		{"mixed labels", dense(map[int][][]float64{Shared: rows, 1: rows}), Shared, -1, "not both"},
		{"strange label", dense(map[int][][]float64{-2: rows}), -2, -1, "label is -2"},
		{"uneven classes", dense(map[int][][]float64{0: rows, 1: rows[:2]}), 1, -1, "same number"},
		{"long row", dense(map[int][][]float64{0: rows, 4: long}), 4, 1, "17 entries"},
		{"long vector", dense(map[int][][]float64{Shared: stretched}), Shared, 2, "length"},
		{"twice the same", dense(map[int][][]float64{Shared: skew}), Shared, 2, "vector 0"},
		{"shared twice", clusters([][]int{{0, 3}, {3}}, rows, rows), 3, -1, "two clusters"},
		{"no labels", clusters([][]int{{}}, rows), Shared, -1, "cluster 0"},
		{"odd haar", func() (*Basis, error) { return Haar(5, 4, 0) }, Shared, -1, "even"},
		{"k of haar", func() (*Basis, error) { return Haar(8, 8, 8) }, Shared, -1, "[16 4 1]"},
		{"cuts of haar", formula("haar", 0, 2), Shared, -1, "cuts must be left out"},
		{"cuts and k", formula("dct", 4, 2), Shared, -1, "k and cuts"},
		{"k of none", formula("none", 4), Shared, -1, "k must be left out"},
		{"not a number", dense(map[int][][]float64{Shared: nan}), Shared, 1, "NaN"},
	} {
		t.Run(q.name, func(t *testing.T) {
			_, err := q.make()
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("error %v", err)
			}
			if bad.Label != q.label || bad.Row != q.row || !strings.Contains(err.Error(), q.says) {
				t.Errorf("label %d, row %d: %v; want %d, %d, %q", bad.Label, bad.Row, err, q.label, q.row, q.says)
			}
		})
	}
}

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
		if !ok || err != nil || b.Kind() != q.want.Kind() || !slices.Equal(b.dims, q.want.dims) {
			t.Errorf("%s, k = %d, cuts %v: %v, %v, %v", q.name, q.k, q.cuts, b, ok, err)
		}
	}
	if _, ok, err := Formula("pca", 8, 8, 0, nil); ok || err != nil {
		t.Error("pca is given by a formula")
	}
}
