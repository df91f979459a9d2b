package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// solversOfAnySchedule returns the solvers that need nothing but a schedule's paths.
func solversOfAnySchedule() []string {
	return slices.DeleteFunc(slices.Clone(api.Solvers), func(s string) bool { return s == "local" || s == "fitted" })
}

// Every solver integrates the same flow from the same latents, so with enough steps all end at one place: a history of
// the wrong quantity, or coefficients meant for another, would not.
func TestSolversAgreeWhenConverged(t *testing.T) {
	e := openXLA(t)
	request := func(solver string, steps int) []float32 {
		return column[float32](get(t, e, "Sample", fmt.Sprintf(
			`{"model":"tiny","labels":[0,1],"seed":5,"solver":%q,"steps":%d,"grid":"edm","dtype":"float32"}`, solver,
			steps)), "sample")
	}
	want := request("heun", 160)
	var size float64
	for _, v := range want {
		size += float64(v) * float64(v)
	}
	for _, solver := range solversOfAnySchedule() {
		steps, most := 80, 0.02
		if solver == "euler" {
			steps, most = 300, 0.1
		}
		var diff float64
		for i, v := range request(solver, steps) {
			d := float64(v - want[i])
			diff += d * d
		}
		t.Logf("%s: relative distance %.2g", solver, math.Sqrt(diff/size))
		if !(math.Sqrt(diff/size) <= most) {
			t.Errorf("%s with %d steps is %.2g away from the converged sample, relative; at most %g", solver, steps,
				math.Sqrt(diff/size), most)
		}
	}
}
