package engine

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
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

// A network whose weights and losses are finite may overflow at other noise levels than those of its losses.
func TestSaveAsksTheNetwork(t *testing.T) {
	dir := newFolder(t)
	net, err := unet.Parse([]byte(tiny))
	if err != nil {
		t.Fatal(err)
	}
	values := net.Init(1)
	for i, p := range net.Params() {
		for k := range values[i] {
			switch {
			case p.Name == "model.map_layer0.weight" && k%8 == 0: // of sin(ln σ/4), which changes its sign at σ = 1
				values[i][k] = 1e25
			case p.Name == "model.map_layer0.weight", p.Name == "model.map_label.weight":
				values[i][k] = 0
			case p.Name == "model.map_layer1.weight":
				values[i][k] = 1e25
			}
		}
	}
	wild := &checkpoint.Model{Net: net, Values: values}
	if err := checkpoint.SaveModel(filepath.Join(dir, "models", "wild"), wild, false); err != nil {
		t.Fatal(err)
	}
	e := reopen(t, dir, Config{})
	putImages(t, e, "noise", 24)
	for name, more := range map[string]string{"wild": `"model":"wild"`, "calm": `"model":"tiny"`} {
		act(t, e, "CreateRun", fmt.Sprintf(
			`{"name":%q,"stage":"pretrain","dataset":"noise","batch":8,"kimg":1,"p_mean":-3,"p_std":0.1,%s}`, name, more))
		loss := column[float64](get(t, e, "TrainStep", fmt.Sprintf(`{"run":%q}`, name)), "loss")
		if math.IsNaN(loss[0]) || math.IsInf(loss[0], 0) {
			t.Fatalf("%s: the loss at σ = 0.05 is %v", name, loss[0])
		}
	}
	_, err = perform(t.Context(), e, "SaveModel", `{"run":"wild","name":"m"}`, nil)
	wantCode(t, "an overflow", err, api.NotFinite)
	if !strings.Contains(err.Error(), "the answer of the network at noise level 1.") {
		t.Errorf("it says %v", err)
	}
	refuse(t, e, "DescribeModel", `{"model":"m"}`, api.ModelNotFound)
	act(t, e, "SaveModel", `{"run":"wild","name":"m","force":true}`)
	act(t, e, "SaveModel", `{"run":"calm","name":"calm"}`)
}

func TestSaveModelRules(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	get(t, e, "TrainStep", `{"run":"r","steps":2}`)
	save := func(body string) error {
		_, err := perform(t.Context(), e, "SaveModel", body, nil)
		return err
	}
	wantCode(t, "taken", save(`{"run":"r","name":"tiny"}`), api.NameTaken)
	wantCode(t, "reserved", save(`{"run":"r","name":"edm","replace":true}`), api.BadRequest)
	wantCode(t, "no run", save(`{"run":"x","name":"m"}`), api.RunNotFound)
	// A run from a model has a half-life of 500 kimg, which is long for what it has seen.
	saved := act(t, e, "SaveModel", `{"run":"r","name":"m"}`)
	if warning, _ := saved["warning"].(string); !strings.Contains(warning, "ema_rampup 0.05") {
		t.Errorf("the warning is %q", warning)
	}
	wantCode(t, "taken by itself", save(`{"run":"r","name":"m"}`), api.NameTaken)
	if err := save(`{"run":"r","name":"m","replace":true}`); err != nil {
		t.Fatal(err)
	}
	info := act(t, e, "DescribeModel", `{"model":"m"}`)
	if info["version"] != 2.0 || info["schedule"].(map[string]any)["T"] != 100.0 {
		t.Errorf("saved as %v", info)
	}
	_, err := put(e, `{"op":"PutSchedule","name":"m","replace":true}`, scheduleTable,
		knots(knot{-1, 0, 0, 1}, knot{-1, 0, 1, 2}))
	wantCode(t, "a schedule of the model's name", err, api.NameTaken)
	learned := get(t, e, "EvaluateSchedule", `{"schedule":"m","points":3}`)
	if g := column[float64](learned, "g"); g[2] != 100 {
		t.Errorf("the model's schedule ends at %v", g[2])
	}
	if _, err := os.Stat(filepath.Join(e.catalog.Folders().Models, "m", "schedule.json")); err != nil {
		t.Error(err)
	}
}

func TestCreateRunRejects(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	refuse(t, e, "CreateRun", `{"name":"r","stage":"isotropic","dataset":"noise","model":"tiny"}`, api.NameTaken)
	for fields, code := range map[string]api.Code{
		`"stage":"isotropic","model":"tiny"`:                                                   api.BadRequest,
		`"stage":"isotropic","dataset":"noise","model":"tiny","batch":0`:                       api.BadRequest,
		`"stage":"isotropic","dataset":"noise","model":"tiny","family":{"basis":"dct","kk":1}`: api.BadRequest,
		`"stage":"pretrain","dataset":"noise","network":{"model_type":"Nothing"}`:              api.BadRequest,
		`"stage":"isotropic","dataset":"none-here","model":"tiny"`:                             api.DatasetNotFound,
		`"stage":"isotropic","dataset":"noise","model":"nobody"`:                               api.ModelNotFound,
		`"stage":"isotropic","dataset":"noise","model":"tiny","schedule":"nobody"`:             api.ScheduleNotFound,
		`"stage":"anisotropic","dataset":"noise","model":"tiny","family":{"basis":"nobody"}`:   api.BasisNotFound,
	} {
		refuse(t, e, "CreateRun", `{"name":"s",`+fields+`}`, code)
	}
	if left, err := os.ReadDir(e.catalog.Folders().Runs); err != nil || len(left) != 1 {
		t.Errorf("runs folder: %v, %v", left, err)
	}
}

// A watcher of a run that was only created waits; its cancellation ends it.
func TestWatchIsCancelled(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	job, err := prepare(t.Context(), e, "WatchRun", `{"run":"r"}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = collect(ctx, job)
	wantCode(t, "past its deadline", err, api.DeadlineExceeded)
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
