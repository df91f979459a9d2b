package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
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
	schema := api.Schema{Columns: evaluationColumns, Metadata: modelMetadata(m, "EvaluateModel", req)}
	most := api.Times(int64(s.Rows())*int64(s.J()), int64(req.Points))
	if _, err := e.price(schema, most); err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: -1, Bytes: -1, Run: func(ctx context.Context, emit func(api.Event) error) error {
		if err := m.Hold(); err != nil {
			return err
		}
		defer m.Release()
		var rows []passes.EvaluationRow
		err := e.queue.Run(ctx, emit, func(ctx context.Context, report func(done, total int)) (err error) {
			rows, err = passes.Evaluate(ctx, on, m.Weights(), d, s.Schedule, passes.EvaluateSettings{
				Points: req.Points, Samples: req.Samples, C: req.C, Seed: req.Seed, Progress: report,
			})
			return err
		})
		if err != nil {
			return err
		}
		return emit(api.Event{Batch: evaluationBatch(rows), Meta: api.Done(int64(len(rows)), int64(len(rows)))})
	}}, nil
}

func evaluationBatch(rows []passes.EvaluationRow) *api.Batch {
	n := len(rows)
	label, subspace := make([]int32, n), make([]int32, n)
	var cols [5][]float64
	for i := range cols {
		cols[i] = make([]float64, n)
	}
	for i, r := range rows {
		label[i], subspace[i] = r.Label, r.Subspace
		for k, v := range []float64{r.T, r.Sigma, r.Loss, r.Residual, r.Stderr} {
			cols[k][i] = v
		}
	}
	return &api.Batch{Rows: n, Cols: []any{label, subspace, cols[0], cols[1], cols[2], cols[3], cols[4]}}
}
