package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// faultyDisk refuses what is to be written below a folder while it is full. It takes renames and deletions.
type faultyDisk struct{ full atomic.Bool }

func newFaultyDisk(t *testing.T, folder string) *faultyDisk {
	t.Helper()
	d := &faultyDisk{}
	t.Cleanup(atomicdir.Intercept(func(e atomicdir.Effect) error {
		if d.full.Load() && strings.HasPrefix(e.Path, folder) && strings.Contains(e.Path, atomicdir.Prefix) &&
			(e.Name == "write" || e.Name == "sync") {
			return &os.PathError{Op: e.Name, Path: e.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	return d
}

// killed returns an engine on what the folder of e holds now, as after kill -9.
func killed(t *testing.T, e *Engine) *Engine {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(e.catalog.Folders().Models))); err != nil {
		t.Fatal(err)
	}
	return reopen(t, dir, Config{})
}

// savedWeights returns the parameters of a stored model.
func savedWeights(t *testing.T, e *Engine, model string) [][]float32 {
	t.Helper()
	m, err := checkpoint.LoadModel(filepath.Join(e.catalog.Folders().Models, model))
	if err != nil {
		t.Fatal(err)
	}
	return m.Values
}

func sameValues(a, b [][]float32) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// Steps that a TrainStep has acknowledged are stored when it has ended, by whichever way it came.
func TestTrainStepIsDurable(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	get(t, e, "TrainStep", `{"run":"r","steps":3}`)
	if info := act(t, killed(t, e), "GetRun", `{"run":"r"}`); info["step"] != 3.0 || info["state"] != runs.Paused {
		t.Errorf("after three steps and a kill it is %v at step %v", info["state"], info["step"])
	}
	in := api.Schema{Columns: []api.Column{
		input.ImageColumn("image", api.Uint8, pixels.CHW, 8, 8, 1),
		{Name: "label", Type: api.Int32},
	}}
	for i, end := range []func(x *api.Exchange) error{
		func(x *api.Exchange) error { _, err := x.End(t.Context()); return err }, // the client has sent its last
		func(x *api.Exchange) error { x.Close(); return nil },                    // the client has left
	} {
		x, err := openExchange(t.Context(), e, "TrainStep", `{"run":"r"}`, in)
		if err != nil {
			t.Fatal(err)
		}
		out := &rows{schema: x.Out, cols: map[string]any{}}
		images := api.Batch{Rows: 8, Cols: []any{make([]uint8, 512), make([]int32, 8)}}
		if err := errors.Join(x.Do(t.Context(), images, out.add), end(x)); err != nil {
			t.Fatal(err)
		}
		x.Close()
		info := act(t, e, "GetRun", `{"run":"r"}`)
		if want := float64(4 + i); info["step"] != want || info["stored_step"] != want {
			t.Errorf("step %v, stored %v, want %v", info["step"], info["stored_step"], want)
		}
	}
}

// A request that goes on for long is stored on its way, and so is one that says nothing.
func TestKeeperStoresBesideASteppingClient(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	in := api.Schema{Columns: []api.Column{
		input.ImageColumn("image", api.Uint8, pixels.CHW, 8, 8, 1),
		{Name: "label", Type: api.Int32},
	}}
	x, err := openExchange(t.Context(), e, "TrainStep", `{"run":"r"}`, in)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	out := &rows{schema: x.Out, cols: map[string]any{}}
	if err := x.Do(t.Context(), api.Batch{Rows: 8, Cols: []any{make([]uint8, 512), make([]int32, 8)}},
		out.add); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return act(t, e, "GetRun", `{"run":"r"}`)["stored_step"] == 1.0 })
	if info := act(t, killed(t, e), "GetRun", `{"run":"r"}`); info["step"] != 1.0 {
		t.Errorf("after a kill it is at step %v", info["step"])
	}
}

// A TrainStep of many steps is stored on its way.
func TestKeeperStoresDuringALongTrainStep(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		job, err := prepare(ctx, e, "TrainStep", `{"run":"r","steps":1000000}`)
		if err == nil {
			err = job.Run(ctx, func(api.Event) error { return nil })
		}
		ended <- err
	}()
	waitFor(t, func() bool { return act(t, e, "GetRun", `{"run":"r"}`)["stored_step"].(float64) > 0 })
	select {
	case err := <-ended:
		t.Fatalf("the request has ended with %v", err)
	default:
	}
	if info := act(t, killed(t, e), "GetRun", `{"run":"r"}`); info["step"].(float64) < 1 {
		t.Errorf("after a kill it is at step %v", info["step"])
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ends with %v", err)
	}
}

// A run is trained on while its state is written, however long that takes.
func TestTrainingGoesOnWhileItIsStored(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	release := make(chan struct{})
	var writing atomic.Bool
	restore := atomicdir.Intercept(func(f atomicdir.Effect) error {
		if f.Name == "write" && strings.HasSuffix(f.Path, "state.safetensors") {
			writing.Store(true)
			<-release
		}
		return nil
	})
	defer restore()
	var once sync.Once
	goOn := func() { once.Do(func() { close(release) }) }
	defer goOn()
	act(t, e, "StartRun", `{"run":"r","kimg":1000}`)
	waitFor(t, writing.Load)
	step := func() float64 { return act(t, e, "GetRun", `{"run":"r"}`)["step"].(float64) }
	begun := step()
	waitFor(t, func() bool { return step() >= begun+3 })
	if stored := act(t, e, "GetRun", `{"run":"r"}`)["stored_step"]; stored != 0.0 {
		t.Errorf("step %v is said to be stored while it is being written", stored)
	}
	goOn()
	waitFor(t, func() bool { return act(t, e, "GetRun", `{"run":"r"}`)["stored_step"].(float64) > 0 })
	act(t, e, "PauseRun", `{"run":"r"}`)
}

// A run that ends on a full disk is paused, not done; its network stays in memory and is what is saved; and once there
// is room it is stored, and done.
func TestFullDiskAtTheEndOfARun(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	newRun(t, e, "twin", "")
	get(t, e, "TrainStep", `{"run":"twin","steps":2}`)
	act(t, e, "SaveModel", `{"run":"twin","name":"want"}`)
	disk := newFaultyDisk(t, e.catalog.Folders().Runs)
	disk.full.Store(true)
	act(t, e, "StartRun", `{"run":"r","kimg":0.016}`)
	get(t, e, "WatchRun", `{"run":"r"}`)
	info := act(t, e, "GetRun", `{"run":"r"}`)
	if info["state"] != runs.Paused || info["step"] != 2.0 || info["stored_step"] != 0.0 ||
		info["store_error"] != "The disk is full" || !strings.Contains(fmt.Sprint(info["error"]), "The disk is full") {
		t.Errorf("on a full disk it is %v", info)
	}
	_, err := perform(t.Context(), e, "PauseRun", `{"run":"r"}`, nil)
	wantCode(t, "PauseRun", err, api.Storage)
	_, err = perform(t.Context(), e, "CancelRun", `{"run":"r"}`, nil)
	wantCode(t, "CancelRun", err, api.Storage)
	if s := state(t, e, "r"); s != runs.Paused {
		t.Errorf("a cancellation that could not be stored leaves it %s", s)
	}
	act(t, e, "SaveModel", `{"run":"r","name":"got"}`) // models have a disk of their own here
	if !sameValues(savedWeights(t, e, "got"), savedWeights(t, e, "want")) {
		t.Error("SaveModel has saved something else than what was learned")
	}
	disk.full.Store(false)
	waitFor(t, func() bool {
		return state(t, e, "r") != runs.Paused || act(t, e, "GetRun", `{"run":"r"}`)["stored_step"] == 2.0
	})
	info = act(t, killed(t, e), "GetRun", `{"run":"r"}`)
	if info["step"] != 2.0 || info["store_error"] != nil {
		t.Errorf("with room again a kill leaves %v", info)
	}
}

// A disk that is full for a moment does not fail a run, and a run ends as it was to once there is room.
func TestMomentaryFullDisk(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	disk := newFaultyDisk(t, e.catalog.Folders().Runs)
	disk.full.Store(true)
	act(t, e, "StartRun", `{"run":"r","kimg":0.016}`)
	get(t, e, "WatchRun", `{"run":"r"}`)
	disk.full.Store(false)
	waitFor(t, func() bool { return state(t, e, "r") == runs.Done })
	if info := act(t, e, "GetRun", `{"run":"r"}`); info["stored_step"] != 2.0 || info["store_error"] != nil ||
		info["error"] != nil {
		t.Errorf("it is %v", info)
	}
	act(t, e, "StartRun", `{"run":"r","kimg":0.024}`)
	get(t, e, "WatchRun", `{"run":"r"}`)
	if info := act(t, e, "GetRun", `{"run":"r"}`); info["step"] != 3.0 || info["state"] != runs.Done {
		t.Errorf("it went on to %v", info)
	}
}

// Each operation on runs that stores answers STORAGE on a full disk, and what was there before is there still.
func TestFullDiskIsStorage(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	disk := newFaultyDisk(t, e.catalog.Folders().Runs)
	disk.full.Store(true)
	const create = `"stage":"isotropic","dataset":"noise","model":"tiny","batch":8,"knots":6,"T":100`
	for _, body := range []string{`{"name":"s",` + create + `}`, `{"name":"r","replace":true,` + create + `}`} {
		_, err := perform(t.Context(), e, "CreateRun", body, nil)
		wantCode(t, body, err, api.Storage)
	}
	_, err := collectNow(t, e, "TrainStep", `{"run":"r","steps":2}`)
	wantCode(t, "TrainStep", err, api.Storage)
	if !strings.Contains(err.Error(), "kept in memory at step 2, and stored up to step 0") {
		t.Errorf("TrainStep says %v", err)
	}
	left, err := os.ReadDir(e.catalog.Folders().Runs)
	if err != nil || len(left) != 1 || left[0].Name() != "r" {
		t.Errorf("there are %v, %v", left, err)
	}
	act(t, e, "DeleteRun", `{"run":"r"}`) // which makes room
	disk.full.Store(false)
}

// Training is not begun where the disk has no room for two states.
func TestNoRoomForTwoStates(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	restore := atomicdir.Intercept(func(e atomicdir.Effect) error {
		if e.Name == "free" {
			return syscall.ENOSPC
		}
		return nil
	})
	_, stepping := collectNow(t, e, "TrainStep", `{"run":"r"}`)
	_, starting := perform(t.Context(), e, "StartRun", `{"run":"r"}`, nil)
	restore()
	wantCode(t, "TrainStep", stepping, api.Storage)
	wantCode(t, "StartRun", starting, api.Storage)
	get(t, e, "TrainStep", `{"run":"r"}`)
}

// Wherever CreateRun is stopped, a restart finds the old run or the new one, whole, and nothing beside. Of the writes
// to one file it is stopped before the first and the second: those after are alike, and internal/crash kills it at
// each.
func TestCreateRunIsAtomic(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", `,"seed":1`)
	get(t, e, "TrainStep", `{"run":"r"}`)
	const create = `"stage":"isotropic","dataset":"noise","model":"tiny","batch":8,"knots":6,"T":100,"seed":2`
	for stop := 0; ; stop++ {
		var mu sync.Mutex
		points, writes := 0, map[string]int{}
		crash := errors.New("the machine stopped")
		restore := atomicdir.Intercept(func(f atomicdir.Effect) error {
			mu.Lock()
			defer mu.Unlock()
			if f.Name == "write" {
				writes[filepath.Base(f.Path)]++
			}
			if f.Name != "write" || writes[filepath.Base(f.Path)] <= 2 {
				points++
			}
			if points > stop {
				return crash
			}
			return nil
		})
		_, err := perform(t.Context(), e, "CreateRun", `{"name":"r","replace":true,`+create+`}`, nil)
		restore()
		if err != nil && !errors.Is(err, crash) {
			t.Fatalf("stop %d: %v", stop, err)
		}
		after := killed(t, e)
		r, err2 := after.runs.Named("r")
		if err2 != nil {
			t.Fatalf("stop %d (%v): %v", stop, err, err2)
		}
		info := r.Describe()
		var cfg struct{ Seed, Step int64 }
		if err := json.Unmarshal(info.Config, &cfg); err != nil {
			t.Fatalf("stop %d: %v in %+v", stop, err, info)
		}
		if old, fresh := cfg.Seed == 1 && info.Step == 1, cfg.Seed == 2 && info.Step == 0; !fresh && (!old || err == nil) {
			t.Errorf("stop %d (%v) leaves %+v with seed %d", stop, err, info, cfg.Seed)
		}
		left, readErr := os.ReadDir(after.catalog.Folders().Runs)
		if readErr != nil || len(left) != 1 {
			t.Errorf("stop %d leaves %v, %v", stop, left, readErr)
		}
		whole, loadErr := checkpoint.LoadRun(filepath.Join(after.catalog.Folders().Runs, "r", "state"))
		if loadErr != nil || whole.Step != info.Step {
			t.Errorf("stop %d leaves a state of %v, %v", stop, whole, loadErr)
		}
		if err == nil {
			if stop < 10 {
				t.Errorf("CreateRun had only %d points to stop at", stop)
			}
			return
		}
	}
}

// What cannot be read is listed as broken, keeps its name, and can be deleted or replaced, but not by accident.
func TestBrokenRuns(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	get(t, e, "TrainStep", `{"run":"r"}`)
	dir := filepath.Dir(e.catalog.Folders().Models)
	folder := filepath.Join(dir, "runs", "r")
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(folder, "status.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "truncated": string(whole[:len(whole)/2]), "more": string(whole) + "{}",
		"unknown field": `{"state":"paused","colour":1}`, "unknown state": `{"state":"sleeping"}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, "status.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		e := reopen(t, dir, Config{})
		info := act(t, e, "GetRun", `{"run":"r"}`)
		if info["state"] != runs.Broken || !strings.Contains(fmt.Sprint(info["error"]), "status.json") {
			t.Errorf("%s: it is %v", name, info)
		}
		_, err := perform(t.Context(), e, "CreateRun",
			`{"name":"r","stage":"isotropic","dataset":"noise","model":"tiny","batch":8}`, nil)
		wantCode(t, "CreateRun", err, api.NameTaken)
		for _, op := range []string{"StartRun", "PauseRun"} {
			_, err = perform(t.Context(), e, op, `{"run":"r"}`, nil)
			wantCode(t, op, err, api.Damaged)
		}
		_, err = perform(t.Context(), e, "SaveModel", `{"run":"r","name":"m"}`, nil)
		wantCode(t, "SaveModel", err, api.Damaged)
		for _, op := range []string{"TrainStep", "WatchRun"} {
			_, err := collectNow(t, e, op, `{"run":"r"}`)
			wantCode(t, op, err, api.Damaged)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(folder, "status.json")); err != nil || string(got) != text {
			t.Errorf("%s: it has been written over by %q, %v", name, got, err)
		}
	}
	e = reopen(t, dir, Config{})
	act(t, e, "DeleteRun", `{"run":"r"}`)
	if _, err := os.Stat(folder); err == nil {
		t.Error("its folder is still there")
	}
	newRun(t, e, "r", "")
}

// A server that ends says so to who waits for a run that has not begun, stores what was stepped, and begins nothing.
func TestRest(t *testing.T) {
	e := open(t)
	newRun(t, e, "waiting", "")
	newRun(t, e, "running", "")
	act(t, e, "StartRun", `{"run":"running","kimg":1000}`)
	job, err := prepare(t.Context(), e, "WatchRun", `{"run":"waiting"}`)
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan error, 1)
	go func() {
		_, err := collect(context.WithoutCancel(t.Context()), job)
		watched <- err
	}()
	waitFor(t, func() bool { return act(t, e, "GetRun", `{"run":"running"}`)["step"].(float64) > 0 })
	if err := e.Rest(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-watched:
		wantCode(t, "WatchRun", err, api.Draining)
	case <-time.After(10 * time.Second):
		t.Error("WatchRun goes on")
	}
	info := act(t, e, "GetRun", `{"run":"running"}`)
	if info["state"] != runs.Paused || info["stored_step"] != info["step"] {
		t.Errorf("it rests as %v", info)
	}
	_, err = perform(t.Context(), e, "StartRun", `{"run":"running"}`, nil)
	wantCode(t, "StartRun", err, api.Draining)
}

// The state before the last is kept beside it, and a store of nothing new writes nothing.
func TestPreviousStateIsKept(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	folder := filepath.Join(e.catalog.Folders().Runs, "r")
	for range 2 {
		get(t, e, "TrainStep", `{"run":"r"}`)
	}
	for name, want := range map[string]int64{"state": 2, "previous": 1} {
		if s, err := checkpoint.LoadRun(filepath.Join(folder, name)); err != nil || s.Step != want {
			t.Errorf("%s is of step %v, %v", name, s, err)
		}
	}
	var effects atomic.Int64
	restore := atomicdir.Intercept(func(atomicdir.Effect) error { effects.Add(1); return nil })
	act(t, e, "PauseRun", `{"run":"r"}`)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	restore()
	if n := effects.Load(); n != 0 {
		t.Errorf("a pause and an end without a step in between made %d effects on the disk", n)
	}
}
