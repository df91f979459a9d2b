package train

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
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

// TestDevicesArePartsOfABatch: a run on four devices has the rows and the state, to the last bit, of one on one device
// that takes its batches in four parts; and so have runs that were begun on four devices and go on with one and with
// two, or the other way round.
func TestDevicesArePartsOfABatch(t *testing.T) {
	d := tinyData(t, 20)
	shared := tinyConfig(Isotropic)
	shared.Estimator = "backprop"
	perClass := tinyConfig(Anisotropic)
	perClass.Family = schedule.Family{PerClass: true, Basis: "dct", K: 4}
	perClass.TrainNetwork = new(false)
	one, four := devicetest.Host(t, 1), devicetest.Host(t, 4)
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"network and schedule", shared}, {"schedules per class", perClass}} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("whole batches on one device are enough after each change")
			}
			c.cfg.Batch = 7
			onFour := start(t, c.cfg, Sources{Device: four, Dataset: d})
			if m := onFour.Memory(); m.Devices != 4 || m.Microbatch != 2 || onFour.Config().Microbatch != 2 {
				t.Fatalf("a batch of seven on four devices: %+v, configuration %d", m, onFour.Config().Microbatch)
			}
			rows := step(t, onFour, 2)
			half := stored(t, onFour)
			rows = append(rows, step(t, onFour, 2)...)
			want := stored(t, onFour)

			c.cfg.Microbatch = 2
			onOne := start(t, c.cfg, Sources{Device: one, Dataset: d})
			if m := onOne.Memory(); m.Devices != 1 {
				t.Errorf("on one device: %+v", m)
			}
			got := step(t, onOne, 2)
			halfOne := stored(t, onOne)
			got = append(got, step(t, onOne, 2)...)
			if !slices.EqualFunc(got, rows, equalRows) {
				t.Errorf("on one device\n%v\non four\n%v", got, rows)
			}
			sameState(t, stored(t, onOne), want)

			for name, from := range map[string]struct {
				state *checkpoint.Run
				on    *device.Device
				n     int
			}{
				"four, then one": {half, one, 1}, "four, then two": {half, devicetest.Host(t, 2), 2},
				"one, then four": {halfOne, four, 4},
			} {
				r := resume(t, from.state, Sources{Device: from.on, Dataset: d})
				if m := r.Memory(); m.Devices != from.n || m.Microbatch != 2 {
					t.Errorf("%s: %+v", name, m)
				}
				if got := step(t, r, 2); !slices.EqualFunc(got, rows[2:], equalRows) {
					t.Errorf("%s: rows\n%v\nwant\n%v", name, got, rows[2:])
				}
				sameState(t, stored(t, r), want)
			}
		})
	}
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
