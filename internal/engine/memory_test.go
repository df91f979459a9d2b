package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// within returns an engine with the model "tiny" on a device of so many bytes.
func within(t *testing.T, limit int64) *Engine {
	t.Helper()
	dev, err := device.Open(device.Config{Plugin: "go", MemoryLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeModel(t, filepath.Join(dir, "models", "tiny"), tiny, 1)
	e, err := Open(t.Context(), Config{Dir: dir, Version: "test", Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = dev.Close()
	})
	return e
}

// memory reads what GetRun says of a run's.
func memory(t *testing.T, e *Engine, run string) (m api.RunMemory) {
	t.Helper()
	text, err := json.Marshal(act(t, e, "GetRun", fmt.Sprintf(`{"run":%q}`, run))["memory"])
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRunsFitTheMemory: a run is told how its steps fit, trains in parts where the whole
// batch does not, and is refused with both numbers where nothing does.
func TestRunsFitTheMemory(t *testing.T) {
	e := within(t, 1<<30)
	newRun(t, e, "whole", "")
	whole := memory(t, e, "whole")
	if whole.Microbatch != 8 || whole.NeededBytes <= 0 || whole.AvailableBytes <= 0 || whole.WholeBytes != 0 {
		t.Errorf("with plenty: %+v", whole)
	}

	tight := within(t, whole.NeededBytes*3/4)
	newRun(t, tight, "parts", "")
	parts := memory(t, tight, "parts")
	config := act(t, tight, "GetRun", `{"run":"parts"}`)["config"].(map[string]any)
	if parts.Microbatch != 4 || parts.NeededBytes > parts.AvailableBytes || parts.WholeBytes != whole.NeededBytes ||
		config["microbatch"] != 4.0 {
		t.Errorf("with three quarters: %+v, microbatch %v", parts, config["microbatch"])
	}
	if r := get(t, tight, "TrainStep", `{"run":"parts","steps":2}`); r.n != 2 {
		t.Errorf("%d steps in parts", r.n)
	}

	scarce := within(t, 64<<10)
	putImages(t, scarce, "noise", 24)
	_, err := perform(t.Context(), scarce, "CreateRun",
		`{"name":"r","stage":"isotropic","dataset":"noise","model":"tiny","batch":8}`, nil)
	wantCode(t, "a run that cannot fit", err, api.TooLarge)
	if text := err.Error(); !strings.Contains(text, "in microbatches of 1 needs an estimated 0.4 MiB") ||
		!strings.Contains(text, "memory_limit") {
		t.Errorf("it says %q", text)
	}
}

// TestSamplesFitTheMemory: where 64 samples at a time would not fit, eight do; where
// eight do not, the request is refused with both numbers.
func TestSamplesFitTheMemory(t *testing.T) {
	e := within(t, 1<<20)
	if r := get(t, e, "Sample", `{"model":"tiny","n":40,"steps":1,"solver":"euler"}`); r.n != 40 {
		t.Errorf("%d samples", r.n)
	}
	if runs := e.device.opened().Work()["evaluate"].Runs; runs != 5 {
		t.Errorf("%d evaluations of 40 samples, want five of eight", runs)
	}
	scarce := within(t, 48<<10)
	job, err := prepare(t.Context(), scarce, "Sample", `{"model":"tiny","n":1,"steps":1,"solver":"euler"}`)
	if err == nil {
		_, err = collect(t.Context(), job)
	}
	wantCode(t, "a sample that cannot fit", err, api.TooLarge)
}
