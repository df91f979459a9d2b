package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
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
	schema := api.Schema{Columns: schedules.BenchColumns, Metadata: reply.Metadata("BenchSchedule", req)}
	bytes, err := e.price(schema, b.Rows)
	return &api.Job{Schema: schema, Rows: b.Rows, Bytes: bytes, Run: b.Run}, err
}

// prepareEvaluateSchedule tabulates a schedule.
func (e *Engine) prepareEvaluateSchedule(_ context.Context, req api.EvaluateSchedule) (*api.Job, error) {
	t, err := schedules.NewTable(e.catalog, req)
	if err != nil {
		return nil, err
	}
	bytes, err := e.price(t.Schema, t.Rows)
	return &api.Job{Schema: t.Schema, Rows: t.Rows, Bytes: bytes, Run: t.Run}, err
}

// exportSchedule returns the schedule file of a schedule.
func (e *Engine) exportSchedule(_ context.Context, req api.ExportSchedule) (any, error) {
	return schedules.Export(e.catalog, req)
}

// exportStart returns the start of a schedule as its file.
func (e *Engine) exportStart(_ context.Context, req api.ExportPart) (any, error) {
	return schedules.ExportStart(e.catalog, req)
}

// exportStatistics returns the statistics of a schedule as their file.
func (e *Engine) exportStatistics(_ context.Context, req api.ExportPart) (any, error) {
	return schedules.ExportStatistics(e.catalog, req)
}

// importSchedule stores what a schedule file holds, with its provenance.
func (e *Engine) importSchedule(_ context.Context, req api.ImportSchedule) (any, error) {
	return schedules.Import(e.catalog, req)
}
