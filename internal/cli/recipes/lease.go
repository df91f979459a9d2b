package recipes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/recipe"
)

// leaseTick is the time between two looks at whether a stage is free.
const leaseTick = 100 * time.Millisecond

// lease waits until no other recipe on the folder does a stage, and keeps others from it until it is released. It is a
// lock as the folder's own: the kernel gives it back when its holder ends, however it ends.
func (k *runner) lease(
	ctx context.Context, r *recipe.Recipe, s recipe.Stage, heading string,
) (release func(), err error) {
	name := fmt.Sprintf("%s-%s-%s", r.Name, s.Kind, filepath.Base(s.Makes))
	dir := filepath.Join(k.place.Data, "leases", url.PathEscape(name))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the lease of a stage: %w", err)
	}
	for said := false; ; {
		lock, err := catalog.Acquire(dir, k.Cmd.CommandPath())
		var held *catalog.Held
		switch {
		case err == nil:
			return func() { _ = lock.Release() }, nil
		case !errors.As(err, &held):
			return nil, err
		case !said:
			fmt.Fprintf(k.Err, "%s: %s is at it; waiting\n", heading, holder(held))
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(leaseTick):
		}
	}
}

// holder says who holds a lock.
func holder(h *catalog.Held) string {
	if h.PID == 0 { // it writes its name at this moment
		return "another recipe"
	}
	return fmt.Sprintf("process %d (%s)", h.PID, h.Program)
}

// follow waits until a run that the server works on, on whose behalf ever, has ended or been paused.
func (k *runner) follow(ctx context.Context, run *api.RunInfo) error {
	for said := false; run.State == "running"; said = true {
		if !said {
			fmt.Fprintf(k.Err, "the run %s is at work on the server; waiting for it\n", run.Name)
		}
		for _, err := range k.server.WatchRun(ctx, api.WatchRun{Run: run.Name}) {
			if err != nil {
				return err
			}
		}
		next := api.RunInfo{}
		if err := connect.Act(ctx, k.server, "GetRun", map[string]any{"run": run.Name}, nil, &next); err != nil {
			return err
		}
		*run = next
	}
	return ctx.Err()
}
