package train

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// stored saves the state of a run, and returns what is read back.
func stored(t *testing.T, r *Run) *checkpoint.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := checkpoint.SaveRun(dir, dir+".previous", stateOf(t, r)); err != nil {
		t.Fatal(err)
	}
	state, err := checkpoint.LoadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestWholeBatchesStayWhole: a run whose batches were whole goes on with them, and so on one device.
func TestWholeBatchesStayWhole(t *testing.T) {
	net, d := gaussian(t, dct(t), []float64{0.3, 0.05}, 20)
	src := func(devices int) Sources {
		return Sources{Device: devicetest.Host(t, devices), Dataset: d, Analytic: net}
	}
	cfg := analyticConfig(Anisotropic)
	cfg.Family.K = 4
	whole := start(t, cfg, src(1))
	step(t, whole, 1)
	half := stored(t, whole)
	rows := step(t, whole, 1)
	r := resume(t, half, src(4))
	if m := r.Memory(); m.Devices != 1 || m.Microbatch != 8 {
		t.Errorf("%+v", m)
	}
	if got := step(t, r, 1); !slices.EqualFunc(got, rows, equalRows) {
		t.Errorf("rows\n%v\nwant\n%v", got, rows)
	}
}
