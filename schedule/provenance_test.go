package schedule

import (
	"math"
	"testing"
)

// TestMovedFrom: ln g of one path's middle knot goes from 1 to 1.5, that of the other stays.
func TestMovedFrom(t *testing.T) {
	thetas := func(first, second float64) *Schedule {
		still := Theta{softplusInverse(1), softplusInverse(1)}
		s, err := FromTheta(Family{Basis: "dct"}, nil,
			[][]Theta{{{softplusInverse(first), softplusInverse(second)}, still}}, math.Exp(2), 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	m := thetas(3, 1).MovedFrom(thetas(1, 1))
	if math.Abs(m.LogG-0.5) > 1e-7 || m.RatioBefore != 1 || math.Abs(m.RatioAfter-math.Exp(0.5)) > 1e-7 {
		t.Errorf("moved by %+v", m)
	}
}
