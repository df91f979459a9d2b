package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
)

// given returns fields with one more, a plan.
func given(t *testing.T, p any, fields string) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return `{"plan":` + string(text) + "," + fields + "}"
}

// The plan of a request gives the bytes of the request: on one level and on two, for all classes and by class, from
// noise and from a law, with fresh noise, guidance and previews.
func TestAPlanSamplesAsItsRequest(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 32)
	rows := []knot{{0, 0, 0, 1e-6}, {0, 0, 10, 100}, {1, 0, 0, 1e-6}, {1, 0, 5, 1}, {1, 0, 10, 100}}
	upload(t, e, `{"op":"PutSchedule","name":"byclass","basis":"none"}`, scheduleTable, knots(rows...))
	upload(t, e, `{"op":"PutSchedule","name":"two","basis":"dct","k":9}`, scheduleTable, knots(
		knot{-1, 0, 0, 1e-6}, knot{-1, 0, 10, 100}, knot{-1, 1, 0, 1e-6}, knot{-1, 1, 5, 2}, knot{-1, 1, 10, 100}))
	act(t, e, "MakeSchedule", `{"name":"law","kind":"start","dataset":"smooth","sigma_max":5}`)
	const of = `"model":"tiny","labels":[0,1,0],"seed":7,"dtype":"float32"`
	for sampler, more := range map[string]string{
		`"solver":"unipc","nfe":4`:                             "",
		`"solver":"ipndm","nfe":4,"grid":"polynomial"`:         `,"every":1`,
		`"solver":"dpmpp2m","nfe":4,"schedule":"two"`:          "",
		`"solver":"deis","nfe":4,"schedule":"byclass"`:         "",
		`"solver":"dpmpp3m","order":3,"nfe":4`:                 `,"guidance":1.5`,
		`"solver":"dpmpp2m","nfe":3,"schedule":"law"`:          "",
		`"nfe":6,"S_churn":3`:                                  "",
		`"steps":3,"second_point":"endpoint","schedule":"two"`: `,"every":2`,
	} {
		plan := reply[api.Plan](t, e, "PlanSampler", `{"model":"tiny","labels":[0,1],`+sampler+`}`)
		want := get(t, e, "Sample", `{`+sampler+`,`+of+more+`}`)
		got := get(t, e, "Sample", given(t, plan, of+more))
		if !sameSamples(got, want) {
			t.Errorf("%s: the plan gives other samples", sampler)
		}
		if a, b := got.schema.Metadata["nfe"], want.schema.Metadata["nfe"]; a != b {
			t.Errorf("%s: %s evaluations, want %s", sampler, a, b)
		}
		act(t, e, "ImportPlan", `{"name":"kept","replace":true,"plan":`+string(mustJSON(t, plan))+`}`)
		if again := get(t, e, "Sample", given(t, "kept", of+more)); !sameSamples(again, want) {
			t.Errorf("%s: the stored plan gives other samples", sampler)
		}
	}
}

// A plan's stages scale what guidance adds: half of it at scale 3 is scale 2, and none of it takes one evaluation. Such
// a plan is refused without guidance.
func TestAPlanSetsGuidance(t *testing.T) {
	e := open(t)
	const of = `"model":"tiny","labels":[0,1],"seed":7,"dtype":"float32"`
	plan := reply[api.Plan](t, e, "PlanSampler", `{"model":"tiny","solver":"ipndm","nfe":3}`)
	want := get(t, e, "Sample", given(t, plan, of+`,"guidance":2`))
	half, none := 0.5, 0.0
	for i := range plan.Stages {
		plan.Stages[i].Guidance = &half
	}
	if got := get(t, e, "Sample", given(t, plan, of+`,"guidance":3`)); !sameSamples(got, want) {
		t.Error("half of the guidance 3 gives other samples than 2")
	}
	for i := range plan.Stages {
		plan.Stages[i].Guidance = &none
	}
	act(t, e, "ImportPlan", `{"name":"unguided","plan":`+string(mustJSON(t, plan))+`}`)
	got := get(t, e, "Sample", given(t, "unguided", of+`,"guidance":3`))
	for i := range plan.Stages {
		plan.Stages[i].Guidance = nil
	}
	if !sameSamples(got, get(t, e, "Sample", given(t, plan, of))) {
		t.Error("no guidance gives other samples than the model's own")
	}
	refuse(t, e, "Sample", given(t, "unguided", of), api.BadRequest, "sets the guidance")
	rows := []knot{{0, 0, 0, 1e-6}, {0, 0, 10, 100}, {1, 0, 0, 1e-6}, {1, 0, 10, 50}}
	upload(t, e, `{"op":"PutSchedule","name":"byclass","basis":"none"}`, scheduleTable, knots(rows...))
	plan = reply[api.Plan](t, e, "PlanSampler", `{"model":"tiny","labels":[0,1],"nfe":3,"schedule":"byclass"}`)
	plan.Classes[1].Stages[0].Guidance = &half
	refuse(t, e, "Sample", given(t, plan, of+`,"guidance":3`), api.BadSchedule, "the same for all classes")
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A search of a model, among images or alone, returns a plan, which is stored under its name, is there after the server
// ends, and is refused on other weights.
func TestMakePlan(t *testing.T) {
	dir, device := t.TempDir(), devicetest.Open(t)
	small := strings.Replace(foldertest.Tiny, `"img_resolution":8`, `"img_resolution":4`, 1)
	foldertest.Model(t, filepath.Join(dir, "models", "tiny"), small, 1)
	e := reopen(t, dir, Config{Device: device})
	putSmoothOf(t, e, "smooth", 64, 4)
	made := map[string]api.Plan{}
	for name, more := range map[string]string{
		"among": `,"dataset":"smooth","samples":64,"solvers":["ipndm"]`, "alone": `,"budget":2000`,
		"unnamed": `,"budget":2000`,
	} {
		if name != "unnamed" {
			more += fmt.Sprintf(`,"name":%q`, name)
		}
		p := reply[api.Plan](t, e, "MakePlan", `{"model":"tiny","nfe":3`+more+`}`)
		made[name] = p
		if report := p.Info.(*api.Few); p.NFE > 3 || report.Summary == "" || report.Paired != (name != "among") {
			t.Errorf("%s: %d evaluations, %+v", name, p.NFE, report)
		}
	}
	list := reply[map[string][]api.PlanInfo](t, e, "ListPlans", `{}`)["plans"]
	if len(list) != 2 || list[0].Name != "alone" || list[0].Summary == "" || list[1].NFE != made["among"].NFE {
		t.Errorf("listed %+v", list)
	}
	refuse(t, e, "MakePlan", `{"model":"tiny","nfe":3,"name":"among"}`, api.NameTaken)
	want := get(t, e, "Sample", given(t, "among", `"model":"tiny","n":2,"dtype":"float32"`))
	e = reopen(t, dir, Config{Device: device})
	if got := get(t, e, "Sample", given(t, "among", `"model":"tiny","n":2,"dtype":"float32"`)); !sameSamples(got, want) {
		t.Error("a stored plan is another after the server has ended")
	}
	back := reply[api.Plan](t, e, "PlanSampler", `{"plan":"among"}`)
	var first, then any
	if json.Unmarshal(mustJSON(t, made["among"]), &first) != nil || json.Unmarshal(mustJSON(t, back), &then) != nil {
		t.Fatal("no JSON")
	}
	if diff := cmp.Diff(first, then); diff != "" {
		t.Errorf("a plan does not come back as it was made: %s", diff)
	}
	origin := back.Provenance.(map[string]any)
	origin["model"].(map[string]any)["hash"] = strings.Repeat("0", 64)
	refuse(t, e, "Sample", given(t, back, `"model":"tiny","n":2`), api.BadRequest, "other_weights")
	get(t, e, "Sample", given(t, back, `"model":"tiny","n":2,"other_weights":true`))
	act(t, e, "DeletePlan", `{"plan":"among"}`)
	refuse(t, e, "Sample", given(t, "among", `"model":"tiny","n":2`), api.PlanNotFound)
}

// A search whose name is taken while it runs returns its plan all the same, and a note. What took the name stays.
func TestMakePlanOfANameTakenMeanwhile(t *testing.T) {
	e := open(t)
	other := reply[api.Plan](t, e, "PlanSampler", `{"schedule":"edm","sigma_min":0.01,"sigma_max":80,"steps":2}`)
	take := sync.OnceFunc(func() { act(t, e, "ImportPlan", `{"name":"mine","plan":`+string(mustJSON(t, other))+`}`) })
	out, err := perform(t.Context(), e, "MakePlan", `{"model":"tiny","nfe":3,"budget":2000,"name":"mine"}`,
		func(api.Meta) { take() })
	if err != nil {
		t.Fatal(err)
	}
	made := out.(api.Plan)
	if len(made.Notes) != 1 || !strings.Contains(made.Notes[0], `not stored: A plan is already called "mine"`) {
		t.Errorf("the notes are %q", made.Notes)
	}
	get(t, e, "Sample", given(t, made, `"model":"tiny","n":2`))
	if kept := reply[api.Plan](t, e, "PlanSampler", `{"plan":"mine"}`); kept.Schedule != "edm" || kept.NFE != other.NFE {
		t.Errorf("the stored plan has schedule %q and %d evaluations", kept.Schedule, kept.NFE)
	}
}

// A plan has the whole sampler: what else shapes one is refused beside it, by its name.
func TestNothingBesideAPlan(t *testing.T) {
	e := open(t)
	plan := reply[api.Plan](t, e, "PlanSampler", `{"schedule":"edm","sigma_min":0.01,"sigma_max":80,"steps":2}`)
	beside := map[string]string{
		"schedule": `"edm"`, "solver": `"heun"`, "steps": "2", "nfe": "4", "grid": `"edm"`, "order": "2",
		"start": `"standard"`, "second_point": `"endpoint"`, "variant": `"bh1"`, "warmup": `"heun"`,
		"denoise_to_zero": "true", "lower_order_final": "false", "S_churn": "1", "S_noise": "1.1",
	}
	for _, field := range slices.Sorted(maps.Keys(beside)) {
		refuse(t, e, "Sample", given(t, plan, `"model":"tiny","n":1,"`+field+`":`+beside[field]), api.BadRequest, field)
	}
	refuse(t, e, "Sample", `{"model":"tiny","n":1,"steps":2,"other_weights":true}`, api.BadRequest, "other_weights")
}
