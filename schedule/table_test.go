package schedule

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// table returns a good per-class table: two classes, two subspaces, knots of their own, the classes interleaved.
func table() []TableRow {
	return []TableRow{
		{0, 0, 0, 1e-4}, // 0
		{1, 0, 0, 1e-3},
		{0, 0, 3, 0.5}, // 2
		{1, 0, 10, 100},
		{0, 0, 10, 100}, // 4
		{0, 1, 0, 1e-4},
		{0, 1, 10, 100}, // 6
		{1, 1, 0, 1e-4},
		{1, 1, 9, 80}, // 8
		{1, 1, 10 * (1 + 1e-10), 100 * (1 - 1e-10)},
	}
}

func TestFromTable(t *testing.T) {
	s, err := FromTable(Family{Basis: "dct", K: 4}, table())
	if err != nil {
		t.Fatal(err)
	}
	want := Family{PerClass: true, Basis: "dct", K: 4}
	if !reflect.DeepEqual(s.Family(), want) || s.J() != 2 || s.Rows() != 2 {
		t.Errorf("family %+v, J %d, rows %d", s.Family(), s.J(), s.Rows())
	}
	for _, r := range table() {
		row, err := s.Row(r.Label)
		if err != nil {
			t.Fatal(err)
		}
		if g, _ := s.At(row, r.Subspace).Eval(r.T); math.Abs(g/r.G-1) > 1e-15 {
			t.Errorf("%+v: g = %v", r, g)
		}
	}
	if end := s.At(1, 1).T(); end != s.T() { // ends within 1e-9 are one end
		t.Errorf("paths end at %v and %v", s.T(), end)
	}
	some := table()
	for i := range some {
		some[i].Label = 7 - 4*some[i].Label // 7 and 3
	}
	if s, err = FromTable(Family{Basis: "dct", K: 4}, some); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Labels(), []int{3, 7}) {
		t.Errorf("labels %v; want them sorted, gaps and all", s.Labels())
	}
	shared, err := FromTable(Family{Basis: "none"}, []TableRow{{-1, 0, 0, 1}, {-1, 0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if shared.Family().PerClass || shared.Labels() != nil {
		t.Error("label −1 is a class")
	}
}

func TestFromTableNamesTheRow(t *testing.T) {
	for _, q := range []struct {
		name  string
		spoil func(rows []TableRow) []TableRow
		row   int
		says  string
	}{
		{"late start", func(r []TableRow) []TableRow { r[1].T = 0.1; return r }, 1, "t must start at 0"},
		{"t repeats", func(r []TableRow) []TableRow { r[2].T = 0; return r }, 2, "t must be strictly"},
		{"t falls", func(r []TableRow) []TableRow { r[8].T = 11; return r }, 9, "t must be strictly"},
		{"g repeats", func(r []TableRow) []TableRow { r[2].G = 1e-4; return r }, 2, "g must be strictly"},
		{"g falls", func(r []TableRow) []TableRow { r[8].G = 200; return r }, 9, "g must be strictly"},
		{"g zero", func(r []TableRow) []TableRow { r[5].G = 0; return r }, 5, "positive"},
		{"g NaN", func(r []TableRow) []TableRow { r[5].G = math.NaN(); return r }, 5, "finite"},
		{"t infinite", func(r []TableRow) []TableRow { r[9].T = math.Inf(1); return r }, 9, "finite"},
		{"another T", func(r []TableRow) []TableRow { r[9].T = 10 * (1 + 1e-8); return r }, 9, "one T"},
		{"a single knot", func(r []TableRow) []TableRow { return r[:6] }, 5, "two knots"},
		{"a subspace missing", func(r []TableRow) []TableRow { return r[:7] }, 3, "subspace 1 of label 1"},
		{"shared and not", func(r []TableRow) []TableRow { r[7].Label = -1; return r }, 7, "(shared) or in none"},
		{"a strange label", func(r []TableRow) []TableRow { r[7].Label = -2; return r }, 7, "class from 0"},
		{"a negative subspace", func(r []TableRow) []TableRow { r[7].Subspace = -1; return r }, 7, "got -1"},
		{"a huge subspace", func(r []TableRow) []TableRow { r[7].Subspace = 1 << 30; return r }, 7, "subspace must lie"},
		{"empty", func([]TableRow) []TableRow { return nil }, -1, "empty"},
	} {
		t.Run(q.name, func(t *testing.T) {
			_, err := FromTable(Family{Basis: "dct"}, q.spoil(table()))
			var bad *Error
			if !errors.As(err, &bad) || bad.Row != q.row || !strings.Contains(bad.Msg, q.says) {
				t.Errorf("%v; want row %d and %q", err, q.row, q.says)
			}
		})
	}
	var bad *Error
	if _, err := FromTable(Family{Basis: "dct", K: 3}, table()); !errors.As(err, &bad) || bad.Row >= 0 {
		t.Errorf("k no square: %v", err)
	}
}
