package train

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/processestest"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// among resumes a run in each of n processes of so many devices each.
func among(t *testing.T, n, devices int, state *checkpoint.Run, src Sources) []*Run {
	t.Helper()
	job, of := processestest.New(n), make([]*Run, n)
	for k := range of {
		src.Device, src.World = devicetest.Host(t, devices), job.World(k)
		of[k] = resume(t, state, src)
	}
	return of
}

// stepAll takes n steps in all processes, and returns the rows, which are the same in all.
func stepAll(t *testing.T, of []*Run, n int) []Row {
	t.Helper()
	rows, errs := make([][]Row, len(of)), make([]error, len(of))
	var all sync.WaitGroup
	for k, r := range of {
		all.Go(func() {
			for range n {
				row, err := r.Step(t.Context())
				if errs[k] = err; err != nil {
					return
				}
				row.Seconds, row.GFLOPS = 0, 0 // of no step again
				rows[k] = append(rows[k], row)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for k := range rows {
		if !slices.EqualFunc(rows[k], rows[0], equalRows) {
			t.Errorf("process %d has the rows\n%v\nprocess 0\n%v", k, rows[k], rows[0])
		}
	}
	return rows[0]
}

// TestDevicesAndProcessesArePartsOfABatch: a run on several devices, or in several processes, has the rows and the
// state, to the last bit, of one on one device that takes its batches in as many parts, from the first step or from a
// later one. In package kernels the steps of every estimator are compared.
func TestDevicesAndProcessesArePartsOfABatch(t *testing.T) {
	d := tinyData(t, 20)
	perClass := tinyConfig(Anisotropic)
	perClass.Family = schedule.Family{PerClass: true, Basis: "dct", K: 4}
	for name, cfg := range map[string]Config{"EDM's loss": tinyConfig(Pretrain), "schedules per class": perClass} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && cfg.Stage != Pretrain {
				t.Skip("one stage is enough after each change")
			}
			src := Sources{Dataset: d}
			cfg.Batch, cfg.Microbatch = 7, 2
			one := start(t, cfg, Sources{Device: devicetest.Host(t, 1), Dataset: d})
			begin := stored(t, one)
			rows := step(t, one, 2)
			half := stored(t, one)
			rows = append(rows, step(t, one, 2)...)
			want := stored(t, one)
			for _, c := range []struct {
				processes, devices int
				from               *checkpoint.Run
				rows               []Row
			}{{2, 2, begin, rows}, {1, 2, half, rows[2:]}, {3, 2, half, rows[2:]}, {1, 4, half, rows[2:]}} {
				if testing.Short() && c.devices == 4 {
					continue
				}
				of := among(t, c.processes, c.devices, c.from, src)
				if m := of[0].Memory(); m.Devices != min(4, c.processes*c.devices) || m.Microbatch != 2 {
					t.Errorf("%d processes of %d devices: %+v", c.processes, c.devices, m)
				}
				if got := stepAll(t, of, len(c.rows)); !slices.EqualFunc(got, c.rows, equalRows) {
					t.Errorf("%d processes of %d devices\n%v\nwant\n%v", c.processes, c.devices, got, c.rows)
				}
				for _, r := range of {
					sameState(t, stored(t, r), want)
				}
			}
		})
	}
}

// TestPartsForAllProcesses: a run that leaves its parts open has one for each device of each process, and both
// processes have the same facts; another data set is another fact.
func TestPartsForAllProcesses(t *testing.T) {
	job, cfg := processestest.New(2), tinyConfig(Pretrain)
	first := start(t, cfg, Sources{Device: devicetest.Host(t, 2), Dataset: tinyData(t, 20), World: job.World(0)})
	if m := first.Memory(); m.Devices != 4 || m.Microbatch != cfg.Batch/4 {
		t.Errorf("a batch of %d: %+v", cfg.Batch, m)
	}
	other := among(t, 2, 2, stored(t, first), Sources{Dataset: tinyData(t, 20)})[1]
	if !slices.Equal(first.Facts(), other.Facts()) {
		t.Errorf("facts\n%v\n%v", first.Facts(), other.Facts())
	}
	if slices.Contains(first.Facts(), processes.Fact{Name: "data set"}) {
		t.Error("the data set has no hash")
	}
}
