package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/schedules"
)

// maker makes schedules of what the engine has.
func (e *Engine) maker() *schedules.Maker {
	return &schedules.Maker{Catalog: e.catalog, Batcher: e.batcher, Queue: e.queue}
}

func (e *Engine) makeSchedule(ctx context.Context, req api.MakeSchedule, progress func(api.Meta)) (any, error) {
	return e.maker().Make(ctx, req, progress)
}

// prepareBenchSchedule runs solvers on schedules on a data set's own Gaussian.
func (e *Engine) prepareBenchSchedule(_ context.Context, req api.BenchSchedule) (*api.Job, error) {
	b, err := e.maker().Bench(req)
	if err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: schedules.BenchColumns, Metadata: metadata("BenchSchedule", req)}
	bytes, err := e.price(schema, b.Rows)
	if err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: b.Rows, Bytes: bytes, Run: b.Run}, nil
}
