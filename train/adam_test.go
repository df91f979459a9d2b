package train

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// TestAdamByHand: β₁ = 0.5, β₂ = 0.75, lr = 0.1, gradients 2 and then −1.
//
//	n = 1: m = 1, v = 1; m/(1−½) = 2, v/(1−¾) = 4;    θ = 1 − 0.1·2/(2+ε)
//	n = 2: m = 0, v = 1; m̂ = 0;                        θ as before
//	n = 3: gradient 1: m = ½, v = 1; m̂ = 4/7, v̂ = 64/37; θ less 0.1·(4/7)/(8/√37+ε)
func TestAdamByHand(t *testing.T) {
	theta := [][]schedule.Theta{{{1}}, {{7}}}
	a := newScheduleAdam(0.5, 0.75, theta)
	active := []bool{true, false}
	want := 1 - 0.1*2/(2+1e-8)
	for n, g := range []float64{2, -1, 1} {
		a.step(theta, [][][]float64{{{g}}, {{5}}}, active, 0.1)
		if n == 2 {
			want -= 0.1 * (4.0 / 7) / (8/math.Sqrt(37) + 1e-8)
		}
		within(t, "θ", theta[0][0][0], want, 1e-15)
	}
	if theta[1][0][0] != 7 || a.n[1] != 0 || a.m[1][0][0] != 0 || a.v[1][0][0] != 0 {
		t.Error("a class that was absent has moved")
	}
	a.step(theta, [][][]float64{{{5}}, {{5}}}, []bool{false, true}, 0.1)
	within(t, "first step of a class that comes late", theta[1][0][0], 7-0.1*5/(5+1e-8), 1e-15)
}
