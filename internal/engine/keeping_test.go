package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data"
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

// Steps that a TrainStep has acknowledged are stored when it has ended, by whichever way it came.
func TestTrainStepIsDurable(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	get(t, e, "TrainStep", `{"run":"r","steps":3}`)
	if info := act(t, killed(t, e), "GetRun", `{"run":"r"}`); info["step"] != 3.0 || info["state"] != runs.Paused {
		t.Errorf("after three steps and a kill it is %v at step %v", info["state"], info["step"])
	}
	in := api.Schema{Columns: []api.Column{
		tables.ImageColumn("image", api.Uint8, data.CHW, 8, 8, 1),
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
		"truncated": string(whole[:len(whole)/2]), "unknown state": `{"state":"sleeping"}`,
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
