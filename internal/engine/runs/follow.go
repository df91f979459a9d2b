package runs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// Several processes train a run as follows. The first has the folder's lock and serves requests. When it starts the
// run, it stores the run's state. The others read the state and the data set, and take the same steps, each on its
// share of the batch. They write nothing. In every step all agree to go on (kernels/processes), so that the end of one
// is the end of all.

// What processes agree on before the first step.
const (
	agreeStored = iota // the run is stored
	agreeRead          // and all have read it
)

// join waits until the other processes have read a run that is to be started, and compares what all have. The owner
// calls it with the training open.
func (s *Runs) join(ctx context.Context, r *Run) error {
	w := s.cfg.World
	if w == nil {
		return nil
	}
	if s.worldUsed.Swap(true) {
		return api.Errorf(api.RunNotRunnable, "Several processes train one run, once")
	}
	for _, stage := range []uint64{agreeStored, agreeRead} {
		if err := w.Agree(ctx, stage, nil); err != nil {
			return err
		}
	}
	return compare(ctx, w, s.cfg.Version, r.name, r.training)
}

func compare(ctx context.Context, w *processes.World, version, name string, t training) error {
	return w.Compare(ctx, append([]processes.Fact{{Name: "version", Value: version}, {Name: "run", Value: name}},
		t.Facts()...))
}

// Following is a run that the first process of a world starts.
type Following struct {
	Dir     string // the data folder
	Run     string // its name
	Version string // of the program
	Device  *device.Device
	World   *processes.World
}

// Follow takes the steps of a run until its first process ends. It writes nothing and needs no lock. The end of ctx
// ends all processes after their present step.
func Follow(ctx context.Context, f Following) error {
	uncancelled := context.WithoutCancel(ctx) // what has been told is waited for
	t, err := f.begin(uncancelled)
	if t != nil {
		defer t.Close()
	}
	for err == nil {
		if ctx.Err() != nil {
			err = f.World.Agree(uncancelled, 0, processes.ErrEnded)
			break
		}
		_, err = t.Step(ctx)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) || stoppedBy(err) != nil {
			err = nil // the first process knows of it
		}
	}
	var peer *processes.EndError
	if errors.Is(err, processes.ErrEnded) || errors.As(err, &peer) && peer.Ended {
		return nil
	}
	return err
}

// begin reads the run when it is stored.
func (f Following) begin(ctx context.Context) (*train.Run, error) {
	if err := f.World.Agree(ctx, agreeStored, nil); err != nil {
		return nil, err
	}
	t, err := f.open(ctx)
	if err := f.World.Agree(ctx, agreeRead, err); err != nil {
		return t, err
	}
	return t, compare(ctx, f.World, f.Version, f.Run, t)
}

func (f Following) open(ctx context.Context) (*train.Run, error) {
	folders, err := catalog.FoldersOf(f.Dir)
	if err != nil {
		return nil, err
	}
	state, err := checkpoint.LoadRun(StatePath(filepath.Join(folders.Runs, f.Run)))
	if err != nil {
		return nil, fmt.Errorf("the run %q cannot be read; all processes need the same data folder: %w", f.Run, err)
	}
	cfg, err := readConfig(state.Config)
	if err != nil {
		return nil, err
	}
	images, err := data.Load(filepath.Join(folders.Datasets, cfg.Dataset))
	if err != nil {
		return nil, fmt.Errorf("the data set %q cannot be read: %w", cfg.Dataset, err)
	}
	if err := images.Check(ctx); err != nil {
		return nil, err
	}
	return train.Resume(state, train.Sources{Device: f.Device, Dataset: images, World: f.World})
}
