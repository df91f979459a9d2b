package runs

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/processestest"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// followed opens runs as the first of two processes, with the run r, and follows it as the second until that ends.
func followed(t *testing.T, change func(*Following)) (*Runs, *processestest.Job, context.CancelFunc, chan error) {
	t.Helper()
	job, dir := processestest.New(2), noiseFolder(t)
	s := onDevice(t, dir, nil, job.World(0))
	f := Following{Dir: dir, Run: "r", Version: "test", Device: devicetest.Fast(t), World: job.World(1)}
	if change != nil {
		change(&f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- Follow(ctx, f) }()
	s.mustCreate(t, "r", "")
	return s, job, cancel, ended
}

// A run of two processes ends as one of one does, and the second with it; its state is that of one process with the
// same parts, and a second run is refused.
func TestFollowers(t *testing.T) {
	s, _, _, ended := followed(t, nil)
	start(t, s, 0.04)
	r := named(t, s, "r")
	waitFor(t, func() bool { return r.Info().State == Done })
	s.mustCreate(t, "again", "")
	_, err := s.Start(t.Context(), api.StartRun{Run: "again"})
	wantCode(t, "a second run", err, api.RunNotRunnable)
	if err := s.cfg.World.Agree(t.Context(), 0, processes.ErrEnded); !errors.Is(err, processes.ErrEnded) {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the follower: %v", err)
	}
	if info := r.Info(); info.Memory.Devices != 2 || info.Memory.Microbatch != 4 || info.Step != 5 {
		t.Errorf("%+v", info)
	}
}

// What is not the same in both processes is named before the first step.
func TestFollowersThatDiffer(t *testing.T) {
	const differ = `process 1 of 2 has another version than process 0: "2", not "test"`
	for name, c := range map[string]struct {
		change        func(*Following)
		first, second string
	}{
		"version": {func(f *Following) { f.Version = "2" }, differ, differ},
		"folder": {
			func(f *Following) { f.Dir = t.TempDir() }, "process 1 of 2 has failed",
			"all processes need the same data folder",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, ended := followed(t, c.change)
			_, err := s.Start(t.Context(), api.StartRun{Run: "r"})
			wantCode(t, "the first", err, api.RunNotRunnable, c.first)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), c.second) {
				t.Errorf("the second: %v", err)
			}
		})
	}
}

// The run is paused, and says why, and its state is stored; whether the other process is told to end, or dies.
func TestLossOfAFollower(t *testing.T) {
	for name, want := range map[string]string{
		"ends": "The run cannot go on: process 1 of 2 has ended",
		"dies": "The run cannot go on: process 0 of 2 has lost the others: a process was killed",
	} {
		t.Run(name, func(t *testing.T) {
			s, job, cancel, ended := followed(t, nil)
			start(t, s, 1000)
			r := named(t, s, "r")
			waitFor(t, func() bool { return r.Info().Step > 1 })
			if name == "ends" {
				cancel()
			} else {
				job.Kill()
			}
			waitFor(t, func() bool { return r.Info().State == Paused })
			if info := r.Info(); info.Error != want || info.StoredStep != info.Step {
				t.Errorf("%+v", info)
			}
			var lost *processes.EndError
			if err := <-ended; name == "ends" && err != nil || name == "dies" && !(errors.As(err, &lost) && lost.Lost != nil) {
				t.Errorf("the follower: %v", err)
			}
		})
	}
}
