package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

func TestLoadModelRules(t *testing.T) {
	e := open(t)
	load := func(body string) error {
		_, err := perform(t.Context(), e, "LoadModel", body, nil)
		return err
	}
	// A folder that appears after the start.
	writeModel(t, filepath.Join(e.catalog.Folders().Models, "late"), tiny, 2)
	wantCode(t, "not loaded yet", func() error { _, err := e.catalog.Model("late"); return err }(), api.ModelNotFound)
	for range 2 { // the second time changes nothing
		if err := load(`{"name":"late"}`); err != nil {
			t.Fatal(err)
		}
	}
	if v := act(t, e, "DescribeModel", `{"model":"late"}`)["version"]; v != 1.0 {
		t.Errorf("version %v after loading the same folder twice", v)
	}
	wantCode(t, "no folder", load(`{"name":"none-here"}`), api.ModelNotFound)
	wantCode(t, "bad name", load(`{"name":"../tiny"}`), api.BadRequest)
	wantCode(t, "no model", load(`{"name":"x","model":"none-here"}`), api.ModelNotFound)
}

// TestModelsAreRenamed: a model takes the name of another, which goes, and its folder that of the other's.
func TestModelsAreRenamed(t *testing.T) {
	e := open(t)
	models := e.catalog.Folders().Models
	writeModel(t, filepath.Join(models, "trial"), tiny, 2)
	act(t, e, "LoadModel", `{"name":"trial"}`)
	wanted := act(t, e, "DescribeModel", `{"model":"trial"}`)["hash"]
	for _, name := range []string{"tiny", "fresh"} { // one that is there, and one that is not
		act(t, e, "LoadModel", `{"name":"`+name+`","model":"trial"}`)
		if got := act(t, e, "DescribeModel", `{"model":"`+name+`"}`); got["hash"] != wanted {
			t.Errorf("the model %s is %v", name, got)
		}
		if _, err := os.Stat(filepath.Join(models, "trial")); !os.IsNotExist(err) {
			t.Errorf("the folder of before: %v", err)
		}
		refuse(t, e, "DescribeModel", `{"model":"trial"}`, api.ModelNotFound) // the name of before
		act(t, e, "LoadModel", `{"name":"trial","model":"`+name+`"}`)
	}
}

// Neither a linked folder nor a linked file may lead out of the models folder.
func TestLoadModelFollowsNoLinkOut(t *testing.T) {
	e := open(t)
	models, outside := e.catalog.Folders().Models, filepath.Join(t.TempDir(), "m")
	writeModel(t, outside, tiny, 3)
	writeModel(t, filepath.Join(models, "half"), tiny, 3)
	weights := filepath.Join(models, "half", "model.safetensors")
	if err := errors.Join(os.Symlink(outside, filepath.Join(models, "linked")), os.Remove(weights),
		os.Symlink(filepath.Join(outside, "model.safetensors"), weights),
		os.Symlink("tiny", filepath.Join(models, "alias"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"linked", "half"} {
		refuse(t, e, "LoadModel", `{"name":"`+name+`"}`, api.BadModel)
	}
	act(t, e, "LoadModel", `{"name":"alias"}`) // a link that stays inside
}

func TestBadModelsAreRefusedAndLeaveTheRest(t *testing.T) {
	dir := t.TempDir()
	models := filepath.Join(dir, "models")
	writeModel(t, filepath.Join(models, "good"), tiny, 1)
	for name, spoil := range map[string]func(folder string) error{
		"no-weights": func(f string) error { return os.Remove(filepath.Join(f, "model.safetensors")) },
		"truncated":  func(f string) error { return os.Truncate(filepath.Join(f, "model.safetensors"), 1000) },
		"bad-schedule": func(f string) error {
			return os.WriteFile(filepath.Join(f, "schedule.json"), []byte(`{"version":99}`), 0o644)
		},
	} {
		writeModel(t, filepath.Join(models, name), tiny, 1)
		// without a manifest, which would name the file: a folder made by hand
		folder := filepath.Join(models, name)
		if err := errors.Join(spoil(folder), os.Remove(filepath.Join(folder, "manifest.json"))); err != nil {
			t.Fatal(err)
		}
	}
	e := reopen(t, dir, Config{})
	list := act(t, e, "ListModels", "")["models"].([]any)
	for _, m := range list {
		if m := m.(map[string]any); (m["integrity"] == api.IsDamaged) == (m["name"] == "good") {
			t.Errorf("listed: %v", m)
		}
	}
	for _, name := range []string{"no-weights", "truncated", "bad-schedule"} {
		refuse(t, e, "LoadModel", `{"name":"`+name+`"}`, api.BadModel)
	}
}

func TestUnloadAndDeleteModel(t *testing.T) {
	e := open(t)
	job, err := prepare(t.Context(), e, "Sample", `{"model":"tiny","n":1,"steps":2}`)
	if err != nil {
		t.Fatal(err)
	}
	act(t, e, "UnloadModel", `{"model":"tiny"}`)
	_, err = collect(t.Context(), job)
	wantCode(t, "a job prepared before", err, api.ModelNotFound)
	refuse(t, e, "UnloadModel", `{"model":"tiny"}`, api.ModelNotFound) // twice
	act(t, e, "LoadModel", `{"name":"tiny"}`)
	get(t, e, "Sample", `{"model":"tiny","n":1,"steps":2}`)
	act(t, e, "DeleteModel", `{"model":"tiny"}`)
	if _, err := os.Stat(filepath.Join(e.catalog.Folders().Models, "tiny")); err == nil {
		t.Error("the folder is still there")
	}
	left, err := os.ReadDir(e.catalog.Folders().Models)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the models folder: %v, %v", left, err)
	}
}

// Every operation of the contract is served in exactly the ways that it lists, and nothing else is.
func TestOperationsAreAllServed(t *testing.T) {
	e := open(t)
	for _, op := range api.Operations() {
		h := e.handlers[op.Name]
		for way, served := range map[api.Way]bool{
			api.ByAction: h.action != nil || h.job != nil && op.By(api.ByAction), api.ByGet: h.job != nil,
			api.ByExchange: h.exchange != nil, api.ByPut: h.upload != nil,
		} {
			if served != op.By(way) {
				t.Errorf("%s is served as an %s: %v, listed: %v", op.Name, way, served, op.By(way))
			}
		}
		if h.job != nil != op.Rows && h.exchange == nil {
			t.Errorf("%s gives rows: %v, listed: %v", op.Name, h.job != nil, op.Rows)
		}
	}
	for name := range e.handlers {
		if api.Operations().Named(name) == nil {
			t.Errorf("%s is served and not listed", name)
		}
	}
}

// Every handler takes the requests that its operation makes: else the assertion of their type panics.
func TestHandlersTakeTheirRequests(t *testing.T) {
	e := open(t)
	for name, h := range e.handlers {
		req := api.Operations().Named(name).New()
		api.SetDefaults(req)
		if r, ok := req.(*api.OfferNetwork); ok { // handlers see requests that are valid
			r.Shape = []int{1, 1, 1}
		}
		if h.action != nil && name != "MakeSchedule" { // which has a request for each kind
			_, _ = h.action(t.Context(), req, func(api.Meta) {})
		}
		if h.job != nil {
			_, _ = h.job(t.Context(), req)
		}
		if h.exchange != nil {
			_, _ = h.exchange(t.Context(), req, api.Schema{})
		}
		if h.upload != nil {
			_, _ = h.upload(t.Context(), req, api.Schema{})
		}
	}
}

func TestBusy(t *testing.T) {
	dir := t.TempDir()
	e := reopen(t, dir, Config{MaxRequests: 1, MaxWatchers: 2})
	sample, watch := api.Operations().Named("Sample"), api.Operations().Named("WatchRun")
	leave, err := e.enter(sample)
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, e, "ListModels", "", api.Busy) // second
	act(t, e, "ServerInfo", "")
	leave()
	act(t, e, "ListModels", "")

	// Those that watch have a bound of their own and keep nobody from working.
	for range 2 {
		if _, err := e.enter(watch); err != nil {
			t.Fatal(err)
		}
	}
	_, err = e.enter(watch)
	wantCode(t, "a third watcher", err, api.Busy)
	act(t, e, "ListModels", "")
}
