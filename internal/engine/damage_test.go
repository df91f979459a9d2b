package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/engine/fsck"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// storedThing is something of each kind: where it lies, how it is used, listed and deleted.
type storedThing struct {
	folder                string
	use, body             string // an operation that gives rows
	list, key, name       string
	deletion, deletedBody string
}

// storeEverything makes a folder that holds one thing of each kind, with every file that it can have.
func storeEverything(t *testing.T) (dir string, things []storedThing) {
	t.Helper()
	e := open(t)
	in, two := corner()
	upload(t, e, `{"op":"PutBasis","name":"corner","rows":2}`, in, two)
	table := knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 10, 100}, knot{-1, 1, 0, 1e-6}, knot{-1, 1, 10, 100})
	upload(t, e, `{"op":"PutSchedule","name":"s","basis":"corner","rows":4}`, scheduleTable, table)
	putImages(t, e, "noise", 24)
	act(t, e, "CreateRun", `{"name":"r","stage":"anisotropic","family":{"basis":"corner"},"dataset":"noise",
		"model":"tiny","batch":8,"knots":6,"T":100,"init":"edm","kimg":1}`)
	get(t, e, "TrainStep", `{"run":"r","steps":1}`)
	act(t, e, "SaveModel", `{"run":"r","name":"m"}`)
	dir = e.cfg.Dir
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	thing := func(folder, use, body, kind, list string) storedThing {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(folder), ".schedule"), ".basis")
		if kind == "Run" {
			name = "r"
		}
		deleted := fmt.Sprintf(`{%q:%q}`, strings.ToLower(kind), name)
		return storedThing{folder, use, body, "List" + list, strings.ToLower(list), name, "Delete" + kind, deleted}
	}
	return dir, []storedThing{
		thing("models/m", "Sample", `{"model":"m","n":1,"steps":1,"schedule":"edm"}`, "Model", "Models"),
		thing("schedules/s.schedule", "EvaluateSchedule", `{"schedule":"s"}`, "Schedule", "Schedules"),
		thing("bases/corner.basis", "Basis", `{"basis":"corner"}`, "Basis", "Bases"),
		thing("datasets/noise", "Dataset", `{"dataset":"noise"}`, "Dataset", "Datasets"),
		thing("runs/r/state", "TrainStep", `{"run":"r","steps":1}`, "Run", "Runs"),
	}
}

// listed returns what a list says of a thing's files.
func (s storedThing) listed(t *testing.T, e *Engine) (state, damage string) {
	t.Helper()
	for _, item := range act(t, e, s.list, `{}`)[s.key].([]any) {
		if info := item.(map[string]any); info["name"] == s.name && info["source"] != "model" {
			state, _ = info["integrity"].(string)
			damage, _ = info["damage"].(string)
			return state, damage
		}
	}
	return "absent", ""
}

// damages are what happens to a file.
var damages = map[string]func(b []byte) []byte{
	"flipped": func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
	"cut":     func(b []byte) []byte { return b[:len(b)/2] },
}

// damagedCopy returns a copy of a data folder in which a file is damaged.
func damagedCopy(t *testing.T, whole, file string, damage func(b []byte) []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filepath.FromSlash(file))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, damage(b), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEveryDamageIsNamed flips a bit in the middle of every stored file in turn, and cuts each short. Using what it
// belongs to is DAMAGED and names the file; the list shows it; and it can be deleted. There is no state before to fall
// back to.
func TestEveryDamageIsNamed(t *testing.T) {
	whole, things := storeEverything(t)
	if err := os.RemoveAll(filepath.Join(whole, "runs/r/previous")); err != nil {
		t.Fatal(err)
	}
	for _, thing := range things {
		files, err := os.ReadDir(filepath.Join(whole, thing.folder))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			for what, damage := range damages {
				t.Run(fmt.Sprintf("%s/%s %s", thing.folder, file.Name(), what), func(t *testing.T) {
					dir := damagedCopy(t, whole, thing.folder+"/"+file.Name(), damage)
					f := inspect(t, dir, false)[thing.folder]
					if f.State != fsck.Damaged || !strings.Contains(strings.Join(f.Faults, " "), file.Name()) {
						t.Errorf("fsck finds %+v", f)
					}
					e := reopen(t, dir, Config{})
					_, err := attempt(t.Context(), e, thing.use, thing.body)
					wantCode(t, "use", err, api.Damaged, file.Name())
					if state, damage := thing.listed(t, e); state != api.IsDamaged || !strings.Contains(damage, file.Name()) {
						t.Errorf("listed as %s: %q", state, damage)
					}
					if thing.key == "schedules" { // it keeps its name until it is deleted
						refuse(t, e, "MakeSchedule", `{"name":"s","kind":"edm"}`, api.NameTaken)
					}
					act(t, e, thing.deletion, thing.deletedBody)
					if left, err := os.ReadDir(filepath.Dir(filepath.Join(dir, thing.folder))); err == nil {
						for _, entry := range left {
							if entry.Name() == filepath.Base(thing.folder) || strings.HasPrefix(entry.Name(), atomicdir.Prefix) {
								t.Errorf("after its deletion there is %s", entry.Name())
							}
						}
					}
				})
			}
		}
	}
}

// TestDamageWhileTraining: images that are cut short under a server fail what reads them, by name, and nothing else. A
// run in the background is paused with the reason, not failed, and goes on once they are put right.
func TestDamageWhileTraining(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	get(t, e, "TrainStep", `{"run":"r","steps":1}`) // its programs are compiled
	act(t, e, "StartRun", `{"run":"r","kimg":1000}`)
	stepOf := func() float64 { return act(t, e, "GetRun", `{"run":"r"}`)["step"].(float64) }
	waitFor(t, func() bool { return stepOf() > 1 })
	images := filepath.Join(e.catalog.Folders().Datasets, "noise", "images.npy")
	whole, err := os.ReadFile(images)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(images, 0); err != nil { // the images lie within a page
		t.Fatal(err)
	}
	waitFor(t, func() bool { return act(t, e, "GetRun", `{"run":"r"}`)["state"] != runs.Running })
	info := act(t, e, "GetRun", `{"run":"r"}`)
	if info["state"] != runs.Paused || !strings.Contains(fmt.Sprint(info["error"]), "images.npy") ||
		info["stored_step"] != info["step"] {
		t.Errorf("it is %v", info)
	}
	_, err = attempt(t.Context(), e, "TrainStep", `{"run":"r"}`)
	wantCode(t, "step", err, api.Damaged)
	refuse(t, e, "MakePlan", `{"model":"tiny","dataset":"noise","nfe":3,"samples":64}`, api.Damaged, "images.npy")
	refuse(t, e, "MakeSchedule", `{"name":"x","kind":"start","dataset":"noise"}`, api.Damaged, "images.npy")
	get(t, e, "Sample", `{"model":"tiny","n":1,"steps":1}`)
	if err := os.WriteFile(images, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	before := stepOf()
	act(t, e, "StartRun", `{"run":"r","kimg":1000}`)
	waitFor(t, func() bool { return stepOf() > before })
	act(t, e, "PauseRun", `{"run":"r"}`)
}

// inspect returns what fsck finds, by path.
func inspect(t *testing.T, dir string, repair bool) map[string]fsck.Finding {
	t.Helper()
	found := map[string]fsck.Finding{}
	if err := fsck.Check(t.Context(), dir, repair, func(f fsck.Finding) { found[f.Path] = f }); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRepair: what was made by hand and what crashes have left is made whole, a run goes on from the state before a
// damaged one, and a second look finds nothing to do.
func TestRepair(t *testing.T) {
	dir, _ := storeEverything(t)
	at := func(path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }
	if err := errors.Join(
		os.Remove(at("models/m/"+atomicdir.ManifestFile)), os.Remove(at("datasets/noise/"+atomicdir.ManifestFile)),
		os.MkdirAll(at("models/"+atomicdir.Prefix+"1/new"), 0o755),
		os.RemoveAll(at("runs/r/previous")), os.CopyFS(at("runs/r/previous"), os.DirFS(at("runs/r/state"))),
		os.Truncate(at("runs/r/state/state.safetensors"), 100), os.Truncate(at("runs/r/status.json"), 5),
	); err != nil {
		t.Fatal(err)
	}
	want := map[string][2]fsck.State{ // before, and while it is repaired
		"models/.tmp-1":        {fsck.Leftover, fsck.Leftover},
		"models/m":             {fsck.Unverified, fsck.OK},
		"models/tiny":          {fsck.OK, fsck.OK},
		"schedules/s.schedule": {fsck.OK, fsck.OK},
		"bases/corner.basis":   {fsck.OK, fsck.OK},
		"datasets/noise":       {fsck.Unverified, fsck.OK},
		"runs/r/status.json":   {fsck.Damaged, fsck.OK},
		"runs/r/state":         {fsck.Damaged, fsck.OK},
		"runs/r/previous":      {fsck.OK, fsck.Damaged},
	}
	for i, repair := range []bool{false, true} {
		found := inspect(t, dir, repair)
		for path, states := range want {
			if f := found[path]; f.State != states[i] || repair && states[0] != states[1] && f.Repaired == "" {
				t.Errorf("repair %t: %s is %+v, want %s", repair, path, f, states[i])
			}
		}
		if len(found) != len(want) {
			t.Errorf("repair %t: found %v", repair, found)
		}
		mended := found["runs/r/status.json"].Repaired
		if repair && mended != "made again from the state: the run is paused there" {
			t.Errorf("the damaged status: %q", mended)
		}
	}
	for path, f := range inspect(t, dir, false) {
		if f.State != fsck.OK && path != "runs/r/previous" {
			t.Errorf("after the repair: %+v", f)
		}
	}
	e := reopen(t, dir, Config{})
	get(t, e, "TrainStep", `{"run":"r","steps":1}`)
	if state, _ := (storedThing{list: "ListModels", key: "models", name: "m"}).listed(t, e); state != api.Intact {
		t.Errorf("the repaired model is %s", state)
	}
}

// What the system refuses is STORAGE in its words, whatever it is, and leaves everything as it was.
func TestErrorsOfTheSystemAreStorage(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	act(t, e, "SaveModel", `{"run":"r","name":"m"}`)
	lists := func() string {
		return fmt.Sprint(act(t, e, "ListModels", ""), act(t, e, "ListDatasets", ""), act(t, e, "ListRuns", ""))
	}
	before := lists()
	for _, errno := range []syscall.Errno{
		syscall.EXDEV, syscall.ENOENT, syscall.EMFILE, syscall.ESTALE, syscall.ENAMETOOLONG, syscall.ENODEV,
	} {
		for op, body := range map[string]string{
			"DeleteModel":   `{"model":"m"}`,
			"DeleteDataset": `{"dataset":"noise"}`,
			"SaveModel":     `{"run":"r","name":"m","replace":true}`,
			"CreateRun":     `{"name":"s","stage":"isotropic","dataset":"noise","model":"tiny"}`,
			"MakeModel":     `{"kind":"mixture","name":"new","dataset":"noise"}`,
		} {
			restore := atomicdir.Intercept(func(f atomicdir.Effect) error {
				if f.Name != "rename" && f.Name != "exchange" {
					return nil
				}
				return &os.LinkError{Op: f.Name, Old: "/secret", New: f.Path, Err: errno}
			})
			_, err := perform(t.Context(), e, op, body, nil)
			restore()
			wantCode(t, fmt.Sprintf("%s and %v", op, errno), err, api.Storage)
			if sentence := explain.Disk(errno); !strings.Contains(err.Error(), sentence) ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("%s says %v, not: %s", op, err, sentence)
			}
		}
	}
	if after := lists(); after != before {
		t.Errorf("left %s\nwas %s", after, before)
	}
}
