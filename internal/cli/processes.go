package cli

import (
	"context"
	"errors"
	"os"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/kernels/processes/mpi"
)

// The values of processesOption other than a file.
const (
	processesMPI = "mpi"
	processesOne = "one"
)

// processesOption selects the library by which several processes train as one.
var processesOption = command.Option{
	Name:      "processes",
	Usage:     "`library` that joins processes of a launcher: mpi, the file of an MPI library, or one to train alone",
	Otherwise: "mpi if mpiexec or srun has started several, else one",
	OneOf:     []string{processesMPI, processesOne},
}

// withProcesses calls first in the first of several processes, or in the only one. The others follow it.
func withProcesses(ctx context.Context, e command.Env,
	first func(context.Context, command.Env, *processes.World) error,
) (err error) {
	library := e.Text("processes")
	switch {
	case library == processesOne, library == "" && !mpi.Launched():
		return first(ctx, e, nil)
	case library == processesMPI:
		library = ""
	}
	link, err := mpi.Open(library)
	if err != nil {
		return err
	}
	world := processes.New(link)
	defer func() {
		if world.Broken() { // the others have ended, or wait for this process
			e.Log.Error("all processes end", "error", err)
			link.Abort()
			os.Exit(1)
		}
		// The launcher ends all processes when one fails: print the error before any of them ends.
		if status := exitStatus(ctx, e.Err, err); status != 0 {
			err = command.ExitError(status)
		}
		err = errors.Join(err, world.Meet(context.WithoutCancel(ctx)), link.Close())
	}()
	if world.Rank() > 0 {
		return follow(ctx, e, world)
	}
	err = first(ctx, e, world)
	tellEnd(ctx, world, err)
	return err
}

// tellEnd informs the other processes that this one ends.
func tellEnd(ctx context.Context, w *processes.World, err error) {
	if err == nil || errors.Is(err, command.ErrInterrupted) || ctx.Err() != nil {
		err = processes.ErrEnded
	}
	_ = w.Agree(context.WithoutCancel(ctx), 0, err)
}

// follow trains in a process other than the first.
func follow(ctx context.Context, e command.Env, w *processes.World) (err error) {
	defer func() { tellEnd(ctx, w, err) }()
	if err := api.CheckName("run", e.Text("name")); err != nil {
		return err
	}
	dev, err := connect.OpenDevice(e)
	if err != nil {
		return err
	}
	return errors.Join(runs.Follow(ctx, runs.Following{
		Dir: e.Text("data"), Run: e.Text("name"), Version: command.Version(), Device: dev, World: w,
	}), dev.Close())
}
