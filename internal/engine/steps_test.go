package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Steps chosen on a model's trajectories err less than uniform ones, the reply's errors are those of Sample, and the
// schedule is the same path.
func TestChosenSteps(t *testing.T) {
	e := open(t)
	info := makeGaussian(t, e,
		`{"name":"five","kind":"steps","model":"tiny","solver":"dpmpp2m","nfe":5,"samples":6,"seed":3,`+
			`"schedule":{"edm":{"T":400}}}`)
	s := info.Steps
	if s == nil || s.Steps != 5 || s.NFE != 5 || s.Samples != 6 || len(s.T) != 6 || s.T[0] != 400 || s.T[5] != 0 ||
		info.T != 400 {
		t.Fatalf("reply %+v, %+v", info, s)
	}
	if !(s.Predicted < s.PredictedUniform && s.Error < 1.05*s.ErrorUniform) {
		t.Errorf("errors %+v", s)
	}
	sample := func(body string) []float32 {
		return column[float32](get(t, e, "Sample", `{"model":"tiny","n":6,"seed":9,"dtype":"float32",`+body+`}`), "sample")
	}
	want := sample(`"steps":100,"schedule":{"edm":{"T":400}}`)
	var sum float64
	for i, x := range sample(`"schedule":"five","solver":"dpmpp2m","nfe":5`) {
		sum += math.Pow(float64(x-want[i]), 2)
	}
	if got := math.Sqrt(sum / float64(len(want))); math.Abs(got/s.Error-1) > 0.05 {
		t.Errorf("samples are %g from the converged ones, the reply says %g", got, s.Error)
	}
	edm, err := e.catalog.ScheduleNamed(api.ScheduleRef{Name: "edm", T: 400})
	if err != nil {
		t.Fatal(err)
	}
	five, err := e.catalog.ScheduleNamed(api.ScheduleRef{Name: "five"})
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range s.T {
		if a, b := edm.Sigma(0, at), five.Sigma(0, 400*float64(5-i)/5); math.Abs(a/b-1) > 1e-9 {
			t.Errorf("node %d is at σ = %v, step %d at %v", i, a, i, b)
		}
	}
	if !slices.IsSortedFunc(s.T, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) {
		t.Errorf("times %v", s.T)
	}
	for body, code := range map[string]api.Code{
		`"model":"nobody","solver":"ab","nfe":3`:                  api.ModelNotFound,
		`"model":"tiny","solver":"ab"`:                            api.BadRequest,
		`"model":"tiny","solver":"heun","nfe":1`:                  api.BadRequest,
		`"model":"tiny","solver":"ab","nfe":500`:                  api.TooLarge,
		`"model":"tiny","solver":"ab","nfe":3,"dataset":"digits"`: api.BadRequest,
		`"model":"tiny","solver":"ab","nfe":3,"schedule":"none"`:  api.ScheduleNotFound,
		`"model":"tiny","solver":"ab","nfe":3,"T":400`:            api.BadRequest,
	} {
		_, err := perform(t.Context(), e, "MakeSchedule", `{"name":"x","kind":"steps",`+body+`}`, nil)
		wantCode(t, body, err, code)
	}
}
