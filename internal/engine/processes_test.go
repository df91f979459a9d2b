package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/processestest"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// followed opens an engine as the first of two processes, and follows its run r as the second until that ends.
func followed(t *testing.T, change func(*runs.Following),
) (*Engine, *processestest.Job, context.CancelFunc, chan error) {
	t.Helper()
	job, dir := processestest.New(2), newFolder(t)
	e := reopen(t, dir, Config{World: job.World(0), Version: "test"})
	f := runs.Following{Dir: dir, Run: "r", Version: "test", Device: devicetest.Fast(t), World: job.World(1)}
	if change != nil {
		change(&f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- runs.Follow(ctx, f) }()
	return e, job, cancel, ended
}

// TestFollowers: a run of two processes ends as one of one does, and the second with it; its state is that of one
// process with the same parts, and a second run is refused.
func TestFollowers(t *testing.T) {
	e, _, _, ended := followed(t, nil)
	newRun(t, e, "r", "")
	act(t, e, "StartRun", `{"run":"r","kimg":0.04}`)
	waitFor(t, func() bool { return state(t, e, "r") == "done" })
	newRun(t, e, "again", "")
	refuse(t, e, "StartRun", `{"run":"again"}`, api.RunNotRunnable) // a second run
	w := e.cfg.World
	if err := w.Agree(t.Context(), 0, processes.ErrEnded); !errors.Is(err, processes.ErrEnded) {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the follower: %v", err)
	}
	info := act(t, e, "GetRun", `{"run":"r"}`)
	if m := info["memory"].(map[string]any); m["devices"] != 2.0 || m["microbatch"] != 4.0 || info["step"] != 5.0 {
		t.Errorf("%v", info)
	}
}

// TestFollowersThatDiffer: what is not the same in both processes is named before the first step.
func TestFollowersThatDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*runs.Following)
		first  string
		second string
	}{
		"version": {
			func(f *runs.Following) { f.Version = "2" }, `process 1 of 2 has another version than process 0: "2", not "test"`,
			`process 1 of 2 has another version than process 0: "2", not "test"`,
		},
		"folder": {
			func(f *runs.Following) { f.Dir = t.TempDir() }, "process 1 of 2 has failed",
			"all processes need the same data folder",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, _, _, ended := followed(t, c.change)
			newRun(t, e, "r", "")
			refuse(t, e, "StartRun", `{"run":"r"}`, api.RunNotRunnable, c.first)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), c.second) {
				t.Errorf("the second: %v", err)
			}
		})
	}
}

// TestLossOfAFollower: the run is paused, and says why, and its state is stored; whether the other process is told to
// end, or dies.
func TestLossOfAFollower(t *testing.T) {
	for name, want := range map[string]string{
		"ends": "The run cannot go on: process 1 of 2 has ended",
		"dies": "The run cannot go on: process 0 of 2 has lost the others: a process was killed",
	} {
		t.Run(name, func(t *testing.T) {
			e, job, cancel, ended := followed(t, nil)
			newRun(t, e, "r", "")
			act(t, e, "StartRun", `{"run":"r","kimg":1000}`)
			waitFor(t, func() bool { return act(t, e, "GetRun", `{"run":"r"}`)["step"].(float64) > 1 })
			if name == "ends" {
				cancel()
			} else {
				job.Kill()
			}
			waitFor(t, func() bool { return state(t, e, "r") == "paused" })
			info := act(t, e, "GetRun", `{"run":"r"}`)
			if info["error"] != want || info["stored_step"] != info["step"] {
				t.Errorf("%v", info)
			}
			var lost *processes.EndError
			if err := <-ended; name == "ends" && err != nil || name == "dies" && !(errors.As(err, &lost) && lost.Lost != nil) {
				t.Errorf("the follower: %v", err)
			}
		})
	}
}
