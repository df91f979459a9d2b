package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train"
)

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
