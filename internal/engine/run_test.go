package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train"
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
	if info := act(t, e, "GetRun", `{"run":"r"}`); info["step_seconds"] != slices.Max(seconds) {
		t.Errorf("after steps of %v s it is %v", seconds, info)
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

var began = time.Now().Truncate(time.Second) // provenance counts in seconds

// provenance returns what ListSchedules says about where a schedule came from.
func provenance(t *testing.T, e *Engine, name string) schedule.Provenance {
	t.Helper()
	for _, s := range e.catalog.ScheduleInfos() {
		if s.Name == name {
			p, ok := s.Provenance.(*schedule.Provenance)
			if !ok {
				t.Fatalf("%s has no provenance", name)
			}
			if p.Program != "anisoflight test" || p.Created.Before(began) || p.Created.After(time.Now()) {
				t.Errorf("%s was made by %q on %v", name, p.Program, p.Created)
			}
			return *p
		}
	}
	t.Fatalf("no schedule %s", name)
	return schedule.Provenance{}
}

func TestProvenanceOfSchedules(t *testing.T) {
	e := open(t)
	putImages(t, e, "bars", 24)
	d, err := e.catalog.Dataset("bars")
	if err != nil {
		t.Fatal(err)
	}
	m := reply[api.ModelInfo](t, e, "DescribeModel", `{"model":"tiny"}`)
	data, net := schedule.Source{Name: "bars", Hash: d.Hash()}, schedule.Source{Name: "tiny", Hash: m.Hash}

	act(t, e, "MakeSchedule", `{"name":"line","kind":"log-linear","T":400}`)
	if p := provenance(t, e, "line"); p.Kind != "log-linear" || p.Dataset != nil || p.Model != nil || p.Seed != nil {
		t.Errorf("log-linear: %+v", p)
	}

	act(t, e, "MakeSchedule",
		`{"name":"geo","kind":"geodesic","model":"tiny","dataset":"bars","T":400,"points":6,"samples":3,"seed":7}`)
	p := provenance(t, e, "geo")
	if p.Kind != "geodesic" || *p.Dataset != data || *p.Model != net || *p.Seed != 7 {
		t.Errorf("geodesic: %+v", p)
	}
	if !(p.EnergyAfter.Value < p.EnergyBefore.Value && p.EnergyAfter.Stderr > 0 && p.EnergyBefore.Stderr > 0) {
		t.Errorf("the geodesic's energy is %+v, EDM's %+v", p.EnergyAfter, p.EnergyBefore)
	}

	upload(t, e, `{"op":"PutSchedule","name":"mine"}`, scheduleTable,
		knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 10, 100}))
	if p := provenance(t, e, "mine"); p.Kind != "upload" || p.EnergyAfter != nil {
		t.Errorf("upload: %+v", p)
	}
	again := reopen(t, e.cfg.Dir, Config{})
	if p := provenance(t, again, "geo"); *p.Dataset != data || p.Kind != "geodesic" {
		t.Errorf("after a restart: %+v", p)
	}
}

// A model that a run saves says what its schedule was learned from; so does the run's stored state.
func TestProvenanceOfRuns(t *testing.T) {
	e := open(t)
	putImages(t, e, "bars", 24)
	act(t, e, "CreateRun",
		`{"name":"r","stage":"isotropic","dataset":"bars","model":"tiny","train_network":false,"batch":2,"T":400,`+
			`"knots":8,"init":"edm","kimg":1,"schedule_lr":0.1,"seed":5}`)
	get(t, e, "TrainStep", `{"run":"r","steps":4}`)
	act(t, e, "SaveModel", `{"run":"r","name":"learned"}`)
	check := func(when, name string, p schedule.Provenance) {
		t.Helper()
		if p.Kind != "learned" || p.Stage != train.Isotropic || p.Steps != 4 || p.Kimg != 0.008 || *p.Seed != 5 ||
			p.Dataset.Name != "bars" || len(p.Dataset.Hash) != 64 {
			t.Errorf("%s: %+v", when, p)
		}
		if p.Model.Name != name || p.EnergyBefore != nil || p.EnergyAfter != nil {
			t.Errorf("%s: of model %+v, energies of other draws %+v and %+v", when, p.Model, p.EnergyBefore, p.EnergyAfter)
		}
		if m := p.Moved; m == nil || m.LogG == 0 || m.RatioBefore != 1 || m.RatioAfter != 1 {
			t.Errorf("%s: the path has moved by %+v", when, m)
		}
	}
	p := provenance(t, e, "learned")
	check("saved", "learned", p)
	if m, err := e.catalog.Model("learned"); err != nil || p.Model.Hash != m.Hash {
		t.Errorf("the model's hash is %s, its provenance says %s (%v)", m.Hash, p.Model.Hash, err)
	}
	act(t, e, "CancelRun", `{"run":"r"}`)
	act(t, e, "SaveModel", `{"run":"r","name":"late"}`) // from the stored state
	check("saved after the end", "late", provenance(t, e, "late"))

	// Training the network alone leaves the schedule what it was.
	act(t, e, "CreateRun", `{"name":"more","stage":"pretrain","dataset":"bars","model":"learned","batch":1,"seed":9}`)
	get(t, e, "TrainStep", `{"run":"more","steps":1}`)
	act(t, e, "SaveModel", `{"run":"more","name":"further"}`)
	check("pretrained further", "learned", provenance(t, e, "further"))
}

func TestImportSchedule(t *testing.T) {
	e := open(t)
	act(t, e, "MakeSchedule", `{"name":"line","kind":"log-linear","T":400,"knots":4}`)
	file, err := json.Marshal(reply[any](t, e, "ExportSchedule", `{"schedule":"line"}`))
	if err != nil {
		t.Fatal(err)
	}
	act(t, e, "ImportSchedule", `{"name":"copy","file":`+string(file)+`}`)
	if p := provenance(t, e, "copy"); p.Kind != "log-linear" {
		t.Errorf("the copy's provenance is %+v", p)
	}
	const head = `{"name":"x","file":{"format":"anisoflight-schedule","version":1,"family":{"per_class":false,"basis":`
	for body, code := range map[string]api.Code{
		`{"name":"copy","file":` + string(file) + `}`:                api.NameTaken,
		`{"name":"tiny","replace":true,"file":` + string(file) + `}`: api.NameTaken, // a model's
		`{"name":"x"}`:            api.BadRequest,
		`{"name":"x","file":[1]}`: api.BadRequest,
		`{"name":"x","file":{"format":"other","version":1}}`:                    api.BadSchedule,
		`{"name":"x","basis":"b","file":` + string(file) + `}`:                  api.BadRequest,
		head + `"b"},"paths":[[{"t":[0,1],"g":[1,2]},{"t":[0,1],"g":[1,2]}]]}}`: api.BasisNotFound,
		head + `"none"},"paths":[[{"t":[0,1],"g":[2,1]}]]}}`:                    api.BadSchedule, // g falls
	} {
		refuse(t, e, "ImportSchedule", body, code)
	}
}
