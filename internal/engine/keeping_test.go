package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// Steps that a TrainStep has acknowledged are stored when it has ended, by whichever way it came.
func TestTrainStepIsDurable(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
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
		if want := float64(1 + i); info["step"] != want || info["stored_step"] != want {
			t.Errorf("step %v, stored %v, want %v", info["step"], info["stored_step"], want)
		}
	}
}

// A run whose status cannot be read is listed as broken, is not written over, and can be deleted.
func TestBrokenRun(t *testing.T) {
	e := open(t)
	newRun(t, e, "r", "")
	dir := e.cfg.Dir
	status := filepath.Join(dir, "runs", "r", "status.json")
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	const text = `{"state":"sleeping"}`
	if err := os.WriteFile(status, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	e = reopen(t, dir, Config{})
	info := act(t, e, "GetRun", `{"run":"r"}`)
	if info["state"] != runs.Broken || !strings.Contains(fmt.Sprint(info["error"]), "status.json") {
		t.Errorf("it is %v", info)
	}
	_, err := perform(t.Context(), e, "StartRun", `{"run":"r"}`, nil)
	wantCode(t, "StartRun", err, api.Damaged)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(status); err != nil || string(got) != text {
		t.Errorf("it has been written over by %q, %v", got, err)
	}
	e = reopen(t, dir, Config{})
	act(t, e, "DeleteRun", `{"run":"r"}`)
	newRun(t, e, "r", "")
}
