package engine

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// A plan follows the schedule, model and labels of its request. Its numbers are tested in Python.
func TestPlanSampler(t *testing.T) {
	e := open(t)
	rows := []knot{{0, 0, 0, 1e-6}, {0, 0, 10, 100}, {1, 0, 0, 1e-6}, {1, 0, 5, 1}, {1, 0, 10, 100}}
	upload(t, e, `{"op":"PutSchedule","name":"two","basis":"none"}`, scheduleTable, knots(rows...))
	plan := func(body string) (api.Plan, error) {
		reply, err := perform(t.Context(), e, "PlanSampler", body, nil)
		p, _ := reply.(api.Plan)
		return p, err
	}
	if p, err := plan(`{"model":"tiny","solver":"dpmpp2m","nfe":3}`); err != nil || p.Schedule != "edm" ||
		p.Predicts != "denoised" || p.History != 2 || p.Model != "tiny" {
		t.Errorf("of a model without a schedule: %v, %+v", err, p)
	}
	if p, err := plan(`{"schedule":"tiny","steps":2}`); err != nil || p.Model != "tiny" {
		t.Errorf("of a model's own schedule: %v, %+v", err, p)
	}
	outside, err := plan(`{"schedule":"edm","sigma_min":0.03,"sigma_max":14.6,"solver":"euler","steps":3,"grid":"edm"}`)
	if err != nil || outside.Model != "" || math.Abs(outside.Init[0]-14.6) > 1e-9 ||
		math.Abs(outside.Stages[2].G[0]-9e-4) > 1e-9 || outside.T[3] != 0 {
		t.Errorf("of a network outside: %v, %+v", err, outside)
	}
	both, err := plan(`{"schedule":"two","labels":[1,0,1],"solver":"euler","steps":2}`)
	if err != nil || both.Version != api.PlanVersion || len(both.Classes) != 2 || both.Stages != nil {
		t.Fatalf("of two classes: %v, %+v", err, both)
	}
	for i, part := range both.Classes {
		one, err := plan(`{"schedule":"two","label":` + strconv.Itoa(i) + `,"solver":"euler","steps":2}`)
		if err != nil || !slices.Equal(part.Labels, []int32{int32(i)}) ||
			!reflect.DeepEqual(part.PlanNumbers, one.PlanNumbers) {
			t.Errorf("class %d of two: %v, %+v, alone %+v", i, err, part, one)
		}
	}
	for body, code := range map[string]api.Code{
		`{"steps":2}`:                  api.BadRequest,
		`{"schedule":"two","steps":2}`: api.BadRequest, // of no class
		`{"schedule":"two","steps":2,"label":1,"labels":[0]}`:                        api.BadRequest,
		`{"schedule":"two","steps":2,"labels":[0,7]}`:                                api.BadRequest,
		`{"schedule":"two","label":1,"steps":2,"grid":"edm"}`:                        api.BadRequest, // whose ends?
		`{"schedule":"edm","steps":2}`:                                               api.BadRequest,
		`{"schedule":{"edm":{"T":400}},"steps":2}`:                                   api.BadRequest,
		`{"schedule":"edm","sigma_min":2,"sigma_max":1,"steps":2}`:                   api.BadRequest,
		`{"schedule":"edm","sigma_max":1,"steps":2}`:                                 api.BadRequest,
		`{"schedule":"edm","model":"tiny","sigma_min":1,"sigma_max":2,"steps":2}`:    api.BadRequest,
		`{"schedule":{"edm":{"T":400}},"sigma_min":0.03,"sigma_max":14.6,"steps":2}`: api.BadRequest,
		`{"schedule":"two","label":0,"model":"tiny","steps":0}`:                      api.BadRequest,
		`{"schedule":"two","label":0,"model":"none-such","steps":2}`:                 api.ModelNotFound,
		`{"schedule":"two","label":0,"model":"tiny","steps":2,"solver":"rk4"}`:       api.BadRequest,
		`{"schedule":"none-such","steps":2}`:                                         api.ScheduleNotFound,
		`{"schedule":"edm","model":"tiny","steps":20000,"solver":"dpmpp2m"}`:         api.TooLarge,
		`{"schedule":"two","labels":[0,1],"steps":9000,"solver":"dpmpp2m"}`:          api.TooLarge,
	} {
		_, err := plan(body)
		wantCode(t, body, err, code)
	}
}
