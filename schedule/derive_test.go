package schedule

import (
	"math"
	"strings"
	"testing"
)

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
