package train

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// startOn is start on given devices.
func startOn(t *testing.T, dev *device.Device, cfg Config, src Sources) *Run {
	t.Helper()
	src.Device = dev
	r, err := New(cfg, src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// stored saves the state of a run, and returns what is read back.
func stored(t *testing.T, r *Run) *checkpoint.Run {
	t.Helper()
	state, err := r.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	if err := checkpoint.SaveRun(dir, dir+".previous", state); err != nil {
		t.Fatal(err)
	}
	if state, err = checkpoint.LoadRun(dir); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestWholeBatchesStayWhole: a run whose batches were whole goes on with them, and so on one device.
func TestWholeBatchesStayWhole(t *testing.T) {
	d := tinyData(t, 20)
	whole := startOn(t, devicetest.Open(t), tinyConfig(Pretrain), Sources{Dataset: d})
	step(t, whole, 1)
	half := stored(t, whole)
	rows := step(t, whole, 1)
	r, err := Resume(half, Sources{Device: devicetest.Host(t, 4), Dataset: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if m := r.Memory(); m.Devices != 1 || m.Microbatch != 8 {
		t.Errorf("%+v", m)
	}
	if got := step(t, r, 1); !slices.EqualFunc(got, rows, equalRows) {
		t.Errorf("rows\n%v\nwant\n%v", got, rows)
	}
}
