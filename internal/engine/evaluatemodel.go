package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/train/passes"
)

var evaluationColumns = []api.Column{
	{Name: "label", Type: api.Int32},
	{Name: "subspace", Type: api.Int32},
	{Name: "t", Type: api.Float64},
	{Name: "sigma", Type: api.Float64},
	{Name: "loss", Type: api.Float64},
	{Name: "residual", Type: api.Float64},
	{Name: "stderr", Type: api.Float64},
}

// prepareEvaluateModel measures a model's loss by noise level.
func (e *Engine) prepareEvaluateModel(_ context.Context, req api.EvaluateModel) (*api.Job, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	d, err := e.catalog.ImagesFor(m, req.Dataset)
	if err != nil {
		return nil, err
	}
	s, on, err := e.catalog.ScheduleOn(req.Schedule, m)
	if err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: evaluationColumns, Metadata: reply.OfModel(m, "EvaluateModel", req)}
	most := api.Times(int64(s.Rows())*int64(s.J()), int64(req.Points))
	if _, err := e.price(schema, most); err != nil {
		return nil, err
	}
	return e.pass(m, schema, func(ctx context.Context, out *reply.Rows, report func(done, total int)) error {
		rows, err := passes.Evaluate(ctx, on, m.Weights(), d, s.Schedule, passes.EvaluateSettings{
			Points: req.Points, Samples: req.Samples, C: req.C, Seed: req.Seed, Progress: report,
		})
		for _, r := range rows {
			out.Add([]int{int(r.Label), int(r.Subspace)}, []float64{r.T, r.Sigma, r.Loss, r.Residual, r.Stderr})
		}
		return err
	}), nil
}

// pass is the job of one pass of a model over a data set, whose rows come at its end.
func (e *Engine) pass(
	m *catalog.Model, schema api.Schema,
	measure func(ctx context.Context, out *reply.Rows, report func(done, total int)) error,
) *api.Job {
	return &api.Job{Schema: schema, Rows: -1, Bytes: -1, Run: func(ctx context.Context, emit func(api.Event) error) error {
		if err := m.Hold(); err != nil {
			return err
		}
		defer m.Release()
		out := reply.NewRows(schema.Columns)
		err := e.queue.Run(ctx, emit, func(ctx context.Context, report func(done, total int)) error {
			return measure(ctx, out, report)
		})
		if err != nil {
			return err
		}
		n := int64(out.Len())
		return emit(api.Event{Batch: out.Batch(), Meta: api.Done(n, n)})
	}}
}
