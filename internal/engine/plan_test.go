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
	plan := func(body string) api.Plan { return reply[api.Plan](t, e, "PlanSampler", body) }
	if p := plan(`{"model":"tiny","solver":"dpmpp2m","nfe":3}`); p.Schedule != "edm" || p.Predicts != "denoised" ||
		p.History != 2 || p.Model != "tiny" {
		t.Errorf("of a model without a schedule: %+v", p)
	}
	if p := plan(`{"schedule":"tiny","steps":2}`); p.Model != "tiny" {
		t.Errorf("of a model's own schedule: %+v", p)
	}
	outside := plan(`{"schedule":"edm","sigma_min":0.03,"sigma_max":14.6,"solver":"euler","steps":3,"grid":"edm"}`)
	if outside.Model != "" || math.Abs(outside.Init[0]-14.6) > 1e-9 ||
		math.Abs(outside.Stages[2].G[0]-9e-4) > 1e-9 || outside.T[3] != 0 {
		t.Errorf("of a network outside: %+v", outside)
	}
	both := plan(`{"schedule":"two","labels":[1,0,1],"solver":"euler","steps":2}`)
	if both.Version != api.PlanVersion || len(both.Classes) != 2 || both.Stages != nil {
		t.Fatalf("of two classes: %+v", both)
	}
	for i, part := range both.Classes {
		one := plan(`{"schedule":"two","label":` + strconv.Itoa(i) + `,"solver":"euler","steps":2}`)
		if !slices.Equal(part.Labels, []int32{int32(i)}) || !reflect.DeepEqual(part.PlanNumbers, one.PlanNumbers) {
			t.Errorf("class %d of two: %+v, alone %+v", i, part, one)
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
		refuse(t, e, "PlanSampler", body, code)
	}
}
