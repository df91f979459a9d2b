package schedule

import (
	"math"
	"strings"
	"testing"
)

// A schedule that is cut off passes through the same noise levels at proportional times, and ends exactly where it was
// asked to.
func TestUntil(t *testing.T) {
	slow, err := NewPath([]float64{0, 2, 4}, []float64{1e-6, 1e-2, 400})
	if err != nil {
		t.Fatal(err)
	}
	fast, err := NewPath([]float64{0, 1, 4}, []float64{1e-6, 1, 400})
	if err != nil {
		t.Fatal(err)
	}
	fam := Family{Basis: "dct"}
	s, err := New(fam, nil, [][]*Path{{slow, fast}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		sigma []float64
		T     float64
	}{{[]float64{5}, 25}, {[]float64{8, 2}, 16}, {[]float64{20, 20}, 400}, {[]float64{20}, 400}} {
		cut, err := s.Truncated(q.sigma)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(cut.T()-q.T) > 1e-9*q.T || math.Abs(cut.Sigma(0, cut.T())-math.Sqrt(q.T)) > 1e-6 {
			t.Errorf("%v ends at T = %v, σ = %v, want T = %v", q.sigma, cut.T(), cut.Sigma(0, cut.T()), q.T)
		}
		for j := range 2 {
			end := s.TimeOf(0, q.sigma[0])
			if len(q.sigma) > 1 {
				end = s.At(0, j).Inverse(q.sigma[j] * q.sigma[j])
				if got := cut.At(0, j).GT(); got != q.sigma[j]*q.sigma[j] {
					t.Errorf("%v: subspace %d ends at g = %v", q.sigma, j, got)
				}
			}
			for _, part := range []float64{0, 0.2, 0.5, 0.9} {
				want, _ := s.At(0, j).Eval(part * end)
				got, _ := cut.At(0, j).Eval(part * cut.T())
				if math.Abs(got-want) > 1e-9*want {
					t.Errorf("%v: subspace %d is at g = %v at %v of its time, was %v", q.sigma, j, got, part, want)
				}
			}
		}
	}
	for _, q := range []struct {
		sigma []float64
		want  string
	}{
		{[]float64{1, 2, 3}, "one noise level or one for each of 2"},
		{[]float64{-1}, "positive and finite"},
		{[]float64{21}, "between the noise levels"},
		{[]float64{1e-4}, "between the noise levels"},
	} {
		if _, err := s.Truncated(q.sigma); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%v: error %v, want %q", q.sigma, err, q.want)
		}
	}
}
