package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
)

// prepareWatchRun follows a run's rows.
func (e *Engine) prepareWatchRun(ctx context.Context, req api.WatchRun) (*api.Job, error) {
	r, err := e.runNamed(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.history(ctx); err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: rowColumns(), Metadata: metadata("WatchRun", req, "run", req.Run)}
	return &api.Job{Schema: schema, Rows: -1, Bytes: -1, Run: func(ctx context.Context, emit func(api.Event) error) error {
		return r.watch(ctx, req.From, emit)
	}}, nil
}

// watch sends the rows from the given one on as they come, until the run is at rest: done, cancelled, failed or paused. A
// run that was only created is waited for.
func (r *run) watch(ctx context.Context, from int, emit func(api.Event) error) error {
	const most = 10_000 // rows of 80 bytes in one batch
	for {
		r.mu.Lock()
		rows := r.rows[min(from, len(r.rows)):]
		rows = rows[:min(most, len(rows))]
		atRest := r.status.State != created && r.status.State != running && r.stepping == 0
		all := from+len(rows) >= len(r.rows)
		changed := r.changed
		r.mu.Unlock()
		if len(rows) > 0 {
			from += len(rows)
			if err := emit(api.Event{Batch: rowBatch(rows), Meta: api.Done(int64(from), -1)}); err != nil {
				return err
			}
		}
		switch {
		case !all:
		case atRest:
			return nil
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
