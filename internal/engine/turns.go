package engine

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// turns shares the device among requests and runs. Everyone takes a turn for each network evaluation (or training step)
// and queues anew for the next one; turns are given in the order of asking, so a long request only ever delays another by
// the evaluations under way.
type turns struct{ seats *semaphore.Weighted }

func newTurns(seats int64) turns { return turns{semaphore.NewWeighted(seats)} }

// take runs f when it is the caller's turn. It gives up when ctx ends, before f or instead of it.
func (t turns) take(ctx context.Context, f func() error) error {
	if err := t.seats.Acquire(ctx, 1); err != nil {
		return err
	}
	defer t.seats.Release(1)
	if err := ctx.Err(); err != nil { // a free seat is given even to those who no longer want it
		return err
	}
	return f()
}
