package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
)

// prepareTrainStep takes steps of the run's own batches.
func (e *Engine) prepareTrainStep(_ context.Context, req api.TrainStep) (*api.Job, error) {
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.MayStep(); err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: runs.RowColumns(), Metadata: metadata("TrainStep", req, "run", req.Run)}
	bytes, err := e.price(schema, int64(req.Steps))
	if err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: int64(req.Steps), Bytes: bytes, Run: func(ctx context.Context, emit func(api.Event) error) error {
		if err := r.Begin(); err != nil {
			return err
		}
		defer r.End()
		for i := range req.Steps {
			if err := r.TakeStep(ctx, r.Step, emit, int64(i+1), int64(req.Steps)); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// prepareWatchRun follows a run's rows.
func (e *Engine) prepareWatchRun(ctx context.Context, req api.WatchRun) (*api.Job, error) {
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.History(ctx); err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: runs.RowColumns(), Metadata: metadata("WatchRun", req, "run", req.Run)}
	return &api.Job{Schema: schema, Rows: -1, Bytes: -1, Run: func(ctx context.Context, emit func(api.Event) error) error {
		return r.Watch(ctx, req.From, emit)
	}}, nil
}
