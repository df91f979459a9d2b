package schedule

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func path(t *testing.T, tau, g []float64) *Path {
	t.Helper()
	p, err := NewPath(tau, g)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// perClass returns a schedule of two classes, labels 4 and 1, two subspaces each.
func perClass(t *testing.T) *Schedule {
	t.Helper()
	s, err := FromTheta(Family{PerClass: true, Basis: "dct"}, []int{4, 1},
		[][]Theta{{{0, 1, 2}, {1, 1, 0}}, {{3, 0, 0}, {-1, 0, 4}}}, 100, 1e-4)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRows(t *testing.T) {
	s := perClass(t)
	if s.J() != 2 || s.Rows() != 2 || s.T() != 100 || !slices.Equal(s.Labels(), []int{4, 1}) {
		t.Errorf("J %d, rows %d, T %v, labels %v", s.J(), s.Rows(), s.T(), s.Labels())
	}
	for label, want := range map[int]int{4: 0, 1: 1} {
		if r, err := s.Row(label); r != want || err != nil {
			t.Errorf("label %d: row %d, %v", label, r, err)
		}
	}
	for _, label := range []int{-1, 0, 2} {
		var bad *LabelError
		if _, err := s.Row(label); !errors.As(err, &bad) || bad.Label != label {
			t.Errorf("label %d: %v", label, err)
		}
	}
	shared := anisotropic(t)
	for _, label := range []int{-1, 0, 7} {
		if r, err := shared.Row(label); r != 0 || err != nil {
			t.Errorf("shared, label %d: row %d, %v", label, r, err)
		}
	}
	g, gdot := make([]float64, 2), make([]float64, 2)
	s.Eval(1, 30, g, gdot)
	for j := range 2 {
		a, b := s.At(1, j).Eval(30)
		if g[j] != a || gdot[j] != b {
			t.Errorf("subspace %d: %v %v, want %v %v", j, g[j], gdot[j], a, b)
		}
	}
}

// Σ(t) is the geometric mean, TimeOf its inverse over the merged knots.
func TestGeometricMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range []*Schedule{anisotropic(t), perClass(t), Isotropic(EDMTheta(32, 6400, 1e-9).Path(6400, 1e-9))} {
		g, gdot := make([]float64, s.J()), make([]float64, s.J())
		for range 200 {
			row, at := rng.IntN(s.Rows()), s.T()*rng.Float64()
			s.Eval(row, at, g, gdot)
			want := 1.0
			for _, v := range g {
				want *= math.Pow(v, 0.5/float64(s.J()))
			}
			sigma := s.Sigma(row, at)
			if math.Abs(sigma/want-1) > 1e-12 {
				t.Errorf("σ(%v) = %v, want %v", at, sigma, want)
			}
			if back := s.TimeOf(row, sigma); math.Abs(back-at) > 1e-9*s.T() {
				t.Errorf("t(σ(%v)) = %v", at, back)
			}
		}
		for row := range s.Rows() {
			if s.TimeOf(row, 1e-30) != 0 || s.TimeOf(row, 1e30) != s.T() || s.TimeOf(row, s.Sigma(row, s.T())) != s.T() {
				t.Error("TimeOf is not clamped to [0, T]")
			}
		}
	}
	if sigma := anisotropic(t).Sigma(0, 10); sigma != 10 {
		t.Errorf("σ(T) = %v, want 10 exactly", sigma)
	}
}

func TestNewRefuses(t *testing.T) {
	p := path(t, []float64{0, 1}, []float64{0.1, 1})
	late := path(t, []float64{0, 1.1}, []float64{0.1, 1})
	two := []*Path{p, p}
	dct, none := Family{Basis: "dct"}, Family{Basis: "none"}
	for _, q := range []struct {
		name   string
		fam    Family
		labels []int
		paths  [][]*Path
		says   string
	}{
		{"nothing", none, nil, nil, "at least one path"},
		{"an empty row", none, nil, [][]*Path{{}}, "at least one path"},
		{"no basis", Family{}, nil, [][]*Path{{p}}, "family.basis is missing"},
		{"none with two", none, nil, [][]*Path{two}, "one subspace"},
		{"dct with one", dct, nil, [][]*Path{{p}}, "at least two"},
		{"k for none", Family{Basis: "none", K: 3}, nil, [][]*Path{{p}}, "k must be left out"},
		{"k no square", Family{Basis: "dct", K: 3}, nil, [][]*Path{two}, "perfect square"},
		{"negative k", Family{Basis: "mine", K: -3}, nil, [][]*Path{two}, "k must be at least 1"},
		{"two shared rows", dct, nil, [][]*Path{two, two}, "one row"},
		{"labels for shared", dct, []int{0}, [][]*Path{two}, "a shared one none"},
		{"no labels", Family{PerClass: true, Basis: "dct"}, nil, [][]*Path{two}, "one label per row"},
		{"too few labels", Family{PerClass: true, Basis: "dct"}, []int{0}, [][]*Path{two, two}, "1 labels for 2 rows"},
		{"a label twice", Family{PerClass: true, Basis: "dct"}, []int{3, 3}, [][]*Path{two, two}, "got 3 twice"},
		{"a negative label", Family{PerClass: true, Basis: "dct"}, []int{-1}, [][]*Path{two}, "at least 0, got -1"},
		{"uneven rows", Family{PerClass: true, Basis: "dct"}, []int{0, 1}, [][]*Path{two, {p, p, p}}, "got 3 in label 1"},
		{"two ends", dct, nil, [][]*Path{{p, late}}, "end at one T"},
	} {
		t.Run(q.name, func(t *testing.T) {
			_, err := New(q.fam, q.labels, q.paths)
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(bad.Msg, q.says) {
				t.Errorf("%v; want %q", err, q.says)
			}
		})
	}
	for name, theta := range map[string][][]Theta{
		"nothing": nil, "an empty row": {{}}, "no parameters": {{{}, {}}}, "uneven": {{{1}, {1, 2}}}, "not finite": {{
			{1},
			{math.Inf(1)},
		}},
	} {
		var bad *Error
		if _, err := FromTheta(dct, nil, theta, 100, 0.1); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := FromTheta(none, nil, [][]Theta{{{1}}}, 1, 2); err == nil {
		t.Error("g0 above T is accepted")
	}
}

func TestScheduleIsImmutable(t *testing.T) {
	s := perClass(t)
	before := s.Sigma(0, 50)
	s.Labels()[0] = 99
	s.Theta()[0][0][0] = 99
	if _, err := s.Row(4); err != nil || s.Labels()[0] != 4 || s.Theta()[0][0][0] != 0 || s.Sigma(0, 50) != before {
		t.Error("a returned slice is shared")
	}
	th := Theta{1, 2}
	q, err := FromTheta(Family{Basis: "none"}, nil, [][]Theta{{th}}, 100, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	th[0] = 99
	if q.Theta()[0][0][0] != 1 {
		t.Error("the caller's parameters are shared")
	}
	if anisotropic(t).Theta() != nil {
		t.Error("a table of knots has parameters")
	}
}

// A richer family starts where the plainer one was.
func TestExpand(t *testing.T) {
	iso := Isotropic(EDMTheta(8, 100, 1e-4).Path(100, 1e-4))
	classes, err := FromTheta(Family{PerClass: true, Basis: "none"}, []int{0, 5}, [][]Theta{{{0, 1}}, {{2, 0}}}, 100, 1e-4)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		name   string
		from   *Schedule
		fam    Family
		labels []int
		j      int
	}{
		{"subspaces", iso, Family{Basis: "dct"}, nil, 2},
		{"classes", iso, Family{PerClass: true, Basis: "none"}, []int{0, 1, 2}, 1},
		{"both", iso, Family{PerClass: true, Basis: "dct"}, []int{2, 0}, 3},
		{"classes to subspaces", classes, Family{PerClass: true, Basis: "dct"}, []int{5, 0}, 2},
		{"two to two", anisotropic(t), Family{PerClass: true, Basis: "dct"}, []int{0, 1}, 2},
	} {
		t.Run(q.name, func(t *testing.T) {
			s, err := q.from.Expand(q.fam, q.labels, q.j)
			if err != nil {
				t.Fatal(err)
			}
			if s.J() != q.j || !slices.Equal(s.Labels(), q.labels) || !reflect.DeepEqual(s.Family(), q.fam) ||
				(s.Theta() == nil) != (q.from.Theta() == nil) {
				t.Errorf("J %d, labels %v, family %+v", s.J(), s.Labels(), s.Family())
			}
			for r := range s.Rows() {
				label := -1
				if q.labels != nil {
					label = q.labels[r]
				}
				from, err := q.from.Row(label)
				if err != nil {
					t.Fatal(err)
				}
				for j := range q.j {
					a, _ := s.At(r, j).Eval(33)
					b, _ := q.from.At(from, min(j, q.from.J()-1)).Eval(33)
					if a != b {
						t.Errorf("row %d, subspace %d: g = %v, was %v", r, j, a, b)
					}
				}
			}
		})
	}
	if _, err := anisotropic(t).Expand(Family{Basis: "dct"}, nil, 3); err == nil {
		t.Error("two subspaces became three")
	}
	if _, err := classes.Expand(Family{Basis: "dct"}, nil, 2); err == nil {
		t.Error("classes became one row")
	}
	var unknown *LabelError
	if _, err := classes.Expand(Family{PerClass: true, Basis: "dct"}, []int{7}, 2); !errors.As(err, &unknown) {
		t.Errorf("a class out of nowhere: %v", err)
	}
}

func TestWithTheta(t *testing.T) {
	table := Isotropic(path(t, []float64{0, 20, 100}, []float64{1e-4, 0.3, 100}))
	s, err := table.WithTheta(11)
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := s.WithTheta(11); same != s {
		t.Error("a schedule with these parameters is made anew")
	}
	if finer, err := s.WithTheta(21); err != nil || len(finer.Theta()[0][0]) != 20 {
		t.Errorf("on 21 knots: %v", err)
	}
	low, high := path(t, []float64{0, 100}, []float64{1e-4, 100}), path(t, []float64{0, 100}, []float64{1e-3, 100})
	two, err := New(Family{Basis: "dct"}, nil, [][]*Path{{low, high}})
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]*Schedule{
		"g(T) is not T": Isotropic(path(t, []float64{0, 1}, []float64{1e-4, 100})),
		"two g0":        two,
	} {
		if _, err := bad.WithTheta(8); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// anisotropic returns a schedule of two different paths.
func anisotropic(t *testing.T) *Schedule {
	t.Helper()
	a := path(t, []float64{0, 0.9, 2.5, 3, 10}, []float64{1e-6, 1e-3, 0.1, 0.9, 100})
	b := path(t, []float64{0, 4, 10}, []float64{1e-5, 0.02, 100})
	s, err := New(Family{Basis: "dct", K: 4}, nil, [][]*Path{{a, b}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEnergyBelongsToTheSchedule(t *testing.T) {
	s := anisotropic(t)
	if s.Energy() != nil {
		t.Error("a schedule comes with densities")
	}
	d := density(t, gaussianDensity(1, 1, 5, 0.1, 10))
	for name, f := range map[string][][]*Density{
		"no rows": {}, "too many rows": {{d, d}, {d, d}}, "one subspace": {{d}}, "a gap": {{d, nil}},
	} {
		var bad *Error
		if _, err := s.WithEnergy(f); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := [][]*Density{{d, d}}
	with, err := s.WithEnergy(f)
	if err != nil {
		t.Fatal(err)
	}
	f[0][0] = nil
	with.Energy()[0][1] = nil
	if e := with.Energy(); e[0][0] != d || e[0][1] != d {
		t.Error("a caller's slice is shared")
	}
	if s.Energy() != nil {
		t.Error("WithEnergy changed its receiver")
	}
}

// A schedule that is cut off passes through the same noise levels at proportional times, and ends exactly where it was
// asked to.
func TestTruncated(t *testing.T) {
	slow := path(t, []float64{0, 2, 4}, []float64{1e-6, 1e-2, 400})
	fast := path(t, []float64{0, 1, 4}, []float64{1e-6, 1, 400})
	s, err := New(Family{Basis: "dct"}, nil, [][]*Path{{slow, fast}})
	if err != nil {
		t.Fatal(err)
	}
	for _, sigma := range []float64{5, 20} {
		cut, err := s.Truncated(sigma)
		if err != nil {
			t.Fatal(err)
		}
		if T := sigma * sigma; math.Abs(cut.T()-T) > 1e-9*T || math.Abs(cut.Sigma(0, cut.T())-sigma) > 1e-6 {
			t.Errorf("%v ends at T = %v, σ = %v", sigma, cut.T(), cut.Sigma(0, cut.T()))
		}
		for j := range 2 {
			for _, part := range []float64{0, 0.2, 0.5, 0.9} {
				want, _ := s.At(0, j).Eval(part * s.TimeOf(0, sigma))
				got, _ := cut.At(0, j).Eval(part * cut.T())
				if math.Abs(got-want) > 1e-9*want {
					t.Errorf("%v: subspace %d is at g = %v at %v of its time, was %v", sigma, j, got, part, want)
				}
			}
		}
	}
	if cut, err := Isotropic(slow).Truncated(8); err != nil || cut.At(0, 0).GT() != 64 {
		t.Errorf("one path cut off at σ = 8: %v", err)
	}
	for sigma, want := range map[float64]string{
		-1: "positive and finite", 21: "between the noise levels", 1e-4: "between the noise levels",
	} {
		if _, err := s.Truncated(sigma); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", sigma, err, want)
		}
	}
}
