package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// newRun creates a run on fresh images.
func newRun(t *testing.T, e *Engine, name, more string) {
	t.Helper()
	if _, err := e.catalog.Dataset("noise"); err != nil {
		putImages(t, e, "noise", 24)
	}
	act(t, e, "CreateRun",
		fmt.Sprintf(`{"name":%q,"stage":"isotropic","dataset":"noise","model":"tiny","batch":8,"knots":6,"T":100,`+
			`"init":"edm","kimg":1%s}`, name, more))
}

func state(t *testing.T, e *Engine, name string) string {
	t.Helper()
	return act(t, e, "GetRun", `{"run":"`+name+`"}`)["state"].(string)
}

// The operations on runs are wired to the room runs, whose own tests have the rules.
func TestRunLifeCycle(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	model := act(t, e, "DescribeModel", `{"model":"tiny"}`)
	made := act(t, e, "GetRun", `{"run":"r"}`)
	if made["state"] != runs.Created || made["parameters"] != model["parameters"] || made["step_seconds"] != nil {
		t.Errorf("a new run is %v; its model has %v parameters", made, model["parameters"])
	}
	r := get(t, e, "TrainStep", `{"run":"r","steps":3}`)
	seconds := column[float64](r, "seconds")[1:] // the first step waits for the compiler
	if info := act(t, e, "GetRun", `{"run":"r"}`); info["step_seconds"] != slices.Max(seconds) ||
		info["state"] != runs.Paused {
		t.Errorf("after steps of %v s it is %v", seconds, info)
	}
	for i, kimg := range column[float64](r, "kimg") {
		if math.Abs(kimg-0.008*float64(i+1)) > 1e-12 || column[int64](r, "step")[i] != int64(i+1) {
			t.Errorf("kimg %v after step %d of 8 images", kimg, i+1)
		}
	}
	for _, name := range []string{
		"loss", "energy", "grad_norm", "schedule_grad_norm", "schedule_grad_stderr", "lr", "schedule_lr",
	} {
		if v := column[float64](r, name); math.IsNaN(v[0]) || len(v) != 3 {
			t.Errorf("%s is %v", name, v)
		}
	}
	act(t, e, "StartRun", `{"run":"r","kimg":1000}`)
	act(t, e, "SaveModel", `{"run":"r","name":"snap"}`)
	get(t, e, "Sample", `{"model":"snap","n":2,"steps":2}`)
	act(t, e, "PauseRun", `{"run":"r"}`)
	if n := get(t, e, "WatchRun", `{"run":"r","from":1}`).n; float64(n+1) != act(t, e, "GetRun", `{"run":"r"}`)["step"] {
		t.Errorf("watched %d steps after the first", n)
	}
	act(t, e, "CancelRun", `{"run":"r"}`)
	act(t, e, "SaveModel", `{"run":"r","name":"last"}`) // what it learned is still there
	if listed := act(t, e, "ListRuns", "")["runs"].([]any); len(listed) != 1 {
		t.Errorf("listed %v", listed)
	}
	act(t, e, "DeleteRun", `{"run":"r"}`)
	refuse(t, e, "GetRun", `{"run":"r"}`, api.RunNotFound) // deleted
}

func TestEvaluateModelAndGeodesic(t *testing.T) {
	e := open(t)
	putImages(t, e, "noise", 24)
	r := get(t, e, "EvaluateModel",
		`{"model":"tiny","dataset":"noise","schedule":{"edm":{"T":100}},"points":8,"samples":4}`)
	if r.n != 8 {
		t.Fatalf("%d rows for 8 points", r.n)
	}
	for i, s := range column[float64](r, "sigma") {
		if s <= 0 || column[float64](r, "residual")[i] <= 0 || column[int32](r, "label")[i] != -1 {
			t.Errorf("row %d: sigma %v residual %v", i, s, column[float64](r, "residual")[i])
		}
	}
	var events int
	reply, err := perform(t.Context(), e, "MakeSchedule",
		`{"name":"geo","kind":"geodesic","model":"tiny","dataset":"noise","T":100,"knots":8,"points":20,"samples":4}`,
		func(api.Meta) { events++ })
	if err != nil {
		t.Fatal(err)
	}
	info := reply.(api.ScheduleInfo)
	if len(info.Energies) != 1 || info.Energies[0].Energy < info.Energies[0].Bound || events == 0 {
		t.Errorf("made %+v with %d reports", info, events)
	}
	// It stores its density, so the geodesic grid works on it, over a restart too.
	again := reopen(t, e.cfg.Dir, Config{})
	get(t, again, "Sample", `{"model":"tiny","n":1,"steps":3,"schedule":"geo"}`)

	for body, code := range map[string]api.Code{
		`{"name":"g","kind":"geodesic","model":"nobody","dataset":"noise"}`: api.ModelNotFound,
		`{"name":"g","kind":"geodesic","model":"tiny","dataset":"nothing"}`: api.DatasetNotFound,
		`{"name":"geo","kind":"geodesic","model":"tiny","dataset":"noise"}`: api.NameTaken,
	} {
		refuse(t, e, "MakeSchedule", body, code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = perform(ctx, e, "MakeSchedule",
		`{"name":"g","kind":"geodesic","model":"tiny","dataset":"noise","samples":10000}`, func(api.Meta) { cancel() })
	wantCode(t, "cancelled", err, api.Cancelled)
	if n := e.active.Load(); n != 0 {
		t.Errorf("%d requests are active", n)
	}
}

// A run that keeps its best state says what that gained, in its description and in the model that is saved, also after
// a restart. Images that do not differ judge no samples.
func TestARunSaysWhatItGained(t *testing.T) {
	e := openSmall(t, Config{})
	const run = `"stage":"isotropic","model":"tiny","batch":2,"knots":4,"T":100,"init":"edm","keep":"samples","for_nfe":3`
	act(t, e, "CreateRun", `{"name":"r","dataset":"smooth","kimg":1,"schedule_lr":0.1,`+run+`}`)
	get(t, e, "TrainStep", `{"run":"r","steps":2}`)
	check := func(when string, of map[string]any) {
		t.Helper()
		o, _ := of["outcome"].(map[string]any)
		if o == nil || o["nfe"] != 3.0 || o["summary"] == "" {
			t.Fatalf("%s: outcome %v", when, o)
		}
		samples := o["samples"].(map[string]any)
		if v := samples["value"].(float64); !(v > 0 && v <= 1) || (v == 1) != (o["step"] == 0.0) {
			t.Errorf("%s: kept step %v with %v times the distance of the start", when, o["step"], v)
		}
	}
	check("running", act(t, e, "GetRun", `{"run":"r"}`))
	saved := act(t, e, "SaveModel", `{"run":"r","name":"m"}`)
	check("saved", saved)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := reopen(t, e.cfg.Dir, Config{})
	check("after a restart", act(t, again, "GetRun", `{"run":"r"}`))
	act(t, again, "CancelRun", `{"run":"r"}`)
	if late := act(t, again, "SaveModel", `{"run":"r","name":"late"}`); late["hash"] != saved["hash"] {
		t.Errorf("saved with %v, and after the end with %v", saved["hash"], late["hash"])
	}

	in := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Float32, data.HWC, 4, 4, 1)}}
	alike := api.Batch{Rows: 4, Cols: []any{make([]float32, 4*16)}}
	upload(t, again, `{"op":"PutDataset","name":"same"}`, in, alike)
	act(t, again, "CreateRun", `{"name":"s","dataset":"same","kimg":0.004,"c":1,`+run+`}`)
	get(t, again, "TrainStep", `{"run":"s","steps":1}`)
	o := act(t, again, "SaveModel", `{"run":"s","name":"flat"}`)["outcome"].(map[string]any)
	if o["samples"] != nil || o["summary"] == "" {
		t.Errorf("images that are all alike judge samples: %v", o)
	}
}
