package engine

import (
	"math"
	"strconv"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Two paths of two classes: ln g is linear, so that the levels of two Euler steps are known.
func TestPlanSampler(t *testing.T) {
	e := open(t)
	rows := []knot{{0, 0, 0, 1e-4}, {0, 0, 10, 100}, {1, 0, 0, 1e-4}, {1, 0, 5, 1}, {1, 0, 10, 100}}
	if _, err := put(e, `{"op":"PutSchedule","name":"two","basis":"none"}`, scheduleTable, knots(rows...)); err != nil {
		t.Fatal(err)
	}
	plan := func(body string) (api.Plan, error) {
		reply, err := perform(t.Context(), e, "PlanSampler", body, nil)
		p, _ := reply.(api.Plan)
		return p, err
	}
	for label, middle := range []float64{0.1, 1} { // g(5)
		p, err := plan(`{"schedule":"two","label":` + strconv.Itoa(label) + `,"solver":"euler","steps":2}`)
		if err != nil {
			t.Fatal(err)
		}
		if p.Solver != "euler" || p.Steps != 2 || p.NFE != 2 || p.History != 1 || p.Predicts != "flow" ||
			p.Label != int32(label) {
			t.Errorf("%+v", p)
		}
		want := []float64{10, 10, 5, 0, 10, 100, 1, 10 - math.Sqrt(middle), 5, middle, 1, math.Sqrt(middle) - 0.01}
		got := append([]float64{p.Init[0]}, p.T...)
		for _, s := range p.Stages {
			got = append(got, s.Time, s.G[0], s.Alpha[0], s.Beta[0][0])
		}
		for i := range want {
			if !(math.Abs(got[i]-want[i]) <= 1e-12*(1+want[i])) {
				t.Errorf("label %d, number %d is %v, want %v", label, i, got[i], want[i])
			}
		}
	}
	if p, err := plan(`{"model":"tiny","solver":"dpmpp2m","nfe":3}`); err != nil || p.Schedule != "edm" ||
		p.Predicts != "denoised" || p.History != 2 {
		t.Errorf("of a model without a schedule: %v, %+v", err, p)
	}
	for body, code := range map[string]api.Code{
		`{"steps":2}`:                                         api.BadRequest,
		`{"schedule":"two","steps":2}`:                        api.BadRequest, // of no class
		`{"schedule":"edm","steps":0}`:                        api.BadRequest,
		`{"schedule":"edm","steps":2,"solver":"rk4"}`:         api.BadRequest,
		`{"schedule":"none-such","steps":2}`:                  api.ScheduleNotFound,
		`{"schedule":"edm","steps":20000,"solver":"dpmpp2m"}`: api.TooLarge,
	} {
		_, err := plan(body)
		wantCode(t, body, err, code)
	}
}
