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

// among resumes a run in each of n processes of two devices each.
func among(t *testing.T, n int, state *checkpoint.Run, src Sources) []*Run {
	t.Helper()
	job, of := processestest.New(n), make([]*Run, n)
	for k := range of {
		src.Device, src.World = devicetest.Host(t, 2), job.World(k)
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

// TestProcessesArePartsOfABatch: in every stage two processes of two devices have the rows and the state, to the last
// bit, of one device that takes its batches in four parts; and so has a run that goes on with three processes, or one.
func TestProcessesArePartsOfABatch(t *testing.T) {
	d := tinyData(t, 20)
	shared := tinyConfig(Isotropic)
	shared.Estimator = "backprop"
	full := tinyConfig(Anisotropic)
	full.Family, full.Estimator = schedule.Family{Basis: "dct", K: 4}, "full"
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"EDM's loss", tinyConfig(Pretrain)}, {"backprop", shared}, {"full", full}} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name != "EDM's loss" {
				t.Skip("one stage is enough after each change")
			}
			src := Sources{Dataset: d}
			c.cfg.Batch, c.cfg.Microbatch = 7, 2
			one := start(t, c.cfg, Sources{Device: devicetest.Host(t, 1), Dataset: d})
			begin := stored(t, one)
			rows := step(t, one, 4)
			want := stored(t, one)

			two := among(t, 2, begin, src)
			if m := two[0].Memory(); m.Devices != 4 || m.Microbatch != 2 {
				t.Errorf("two processes: %+v", m)
			}
			got := stepAll(t, two, 2)
			half := stored(t, two[0])
			got = append(got, stepAll(t, two, 2)...)
			if !slices.EqualFunc(got, rows, equalRows) {
				t.Errorf("two processes\n%v\none\n%v", got, rows)
			}
			for _, r := range two {
				sameState(t, stored(t, r), want)
			}

			for _, n := range []int{1, 3} {
				of := among(t, n, half, src)
				if got := stepAll(t, of, 2); !slices.EqualFunc(got, rows[2:], equalRows) {
					t.Errorf("two processes, then %d\n%v\nwant\n%v", n, got, rows[2:])
				}
				sameState(t, stored(t, of[n-1]), want)
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
	state := stored(t, first)
	other := among(t, 2, state, Sources{Dataset: tinyData(t, 20)})[1]
	if !slices.Equal(first.Facts(), other.Facts()) {
		t.Errorf("facts\n%v\n%v", first.Facts(), other.Facts())
	}
	if slices.Contains(first.Facts(), processes.Fact{Name: "data set"}) {
		t.Error("the data set has no hash")
	}
}
