package schedule

import (
	"math"
	"testing"
)

// TestMovedFrom: ln g of one path's middle knot goes from 1 to 1.5, that of the other stays. Below
// σ = 0.02 nothing counts.
func TestMovedFrom(t *testing.T) {
	thetas := func(first, second, g0 float64) *Schedule {
		still := Theta{softplusInverse(1), softplusInverse(1)}
		s, err := FromTheta(Family{Basis: "dct"}, nil,
			[][]Theta{{{softplusInverse(first), softplusInverse(second)}, still}}, math.Exp(2)*g0, g0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	m := thetas(3, 1, 1).MovedFrom(thetas(1, 1, 1))
	want := Movement{
		LogG: 0.5, Sigma: math.Exp(0.75), RatioBefore: 1, RatioAfter: math.Exp(0.5), RatioSigma: math.Exp(0.625),
	}
	if math.Abs(m.LogG-want.LogG)+math.Abs(m.Sigma-want.Sigma)+math.Abs(m.RatioAfter-want.RatioAfter)+
		math.Abs(m.RatioSigma-want.RatioSigma) > 1e-6 || m.RatioBefore != 1 {
		t.Errorf("moved by %+v, want %+v", m, want)
	}
	if m := thetas(3, 1, 1e-5).MovedFrom(thetas(1, 1, 1e-5)); m.LogG != 0 || m.RatioAfter != 1 {
		t.Errorf("where nothing shows the paths have moved by %+v", m)
	}
}
