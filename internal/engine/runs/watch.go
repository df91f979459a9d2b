package runs

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Watch sends the rows from the given one on as they come, until the run is at rest: done, cancelled, failed or paused.
// A run that was only created is waited for, until the server ends. With noWait the rows that there are end it.
func (r *Run) Watch(ctx context.Context, from int, noWait bool, emit func(api.Event) error) error {
	const most = 10_000 // rows of 80 bytes in one batch
	for {
		r.mu.Lock()
		rows := r.rows[min(from, len(r.rows)):]
		rows = rows[:min(most, len(rows))]
		atRest := r.status.State != Created && r.status.State != Running && r.stepping == 0
		all := from+len(rows) >= len(r.rows)
		changed := r.changed
		var ending <-chan struct{} // of the server, where there is no step to come
		if r.status.State == Created && r.stepping == 0 {
			ending = r.of.ending
		}
		r.mu.Unlock()
		if len(rows) > 0 {
			from += len(rows)
			if err := emit(api.Event{Batch: rowBatch(rows), Meta: api.Done(int64(from), -1)}); err != nil {
				return err
			}
		}
		switch {
		case !all:
		case atRest, noWait:
			return nil
		default:
			select {
			case <-changed:
			case <-ending:
				return errResting()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
