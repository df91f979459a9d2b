package batch

import (
	"cmp"
	"context"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Run does long work of a lower floor with a context that ends when nobody listens any more. The work reports (done,
// total) between evaluations: at every report it hands its slot to whoever waits. Progress goes to emit now and then.
func (q *Queue) Run(
	ctx context.Context, emit func(api.Event) error, f func(ctx context.Context, report func(done, total int)) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := q.Acquire(ctx); err != nil {
		return err
	}
	holds := true
	defer func() {
		if holds {
			q.Release()
		}
	}()
	var failed error // emit, or waiting
	var last time.Time
	err := f(ctx, func(done, total int) {
		if failed != nil {
			return
		}
		q.Release()
		if now := time.Now(); now.Sub(last) >= api.ProgressEvery {
			last = now
			failed = emit(api.Event{Meta: api.Progress(done, total)})
		}
		if failed == nil {
			failed = q.Acquire(ctx)
		}
		if failed != nil {
			holds = false
			cancel()
		}
	})
	return cmp.Or(failed, err)
}
