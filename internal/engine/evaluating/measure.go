package evaluating

import (
	"context"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule/basis"
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

// EvaluateModel measures the loss and the residual of a model along a schedule.
func (k *Evaluator) EvaluateModel(_ context.Context, req api.EvaluateModel) (*api.Job, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	d, err := k.Catalog.ImagesFor(m, req.Dataset)
	if err != nil {
		return nil, err
	}
	s, network, err := k.Catalog.ScheduleAndNetwork(req.Schedule, m)
	if err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: evaluationColumns, Metadata: tables.OfModel(m, "EvaluateModel", req)}
	most := api.Times(int64(s.Rows())*int64(s.J()), int64(req.Points))
	if _, err := tables.Price(k.MaxBytes, schema, most); err != nil {
		return nil, err
	}
	return k.pass(m, schema, func(ctx context.Context, out *tables.Rows, report func(done, total int)) error {
		rows, err := passes.Evaluate(ctx, network, m.Weights(), d, s.Schedule, passes.EvaluateSettings{
			Points: req.Points, Samples: req.Samples, C: req.C, Seed: req.Seed, Progress: report,
		})
		for _, r := range rows {
			out.Add([]int{int(r.Label), int(r.Subspace)}, []float64{r.T, r.Sigma, r.Loss, r.Residual, r.Stderr})
		}
		return err
	}), nil
}

var predictColumns = []api.Column{
	{Name: "basis", Type: api.Int32},
	{Name: "per_class", Type: api.Int32},
	{Name: "k", Type: api.Int32},
	{Name: "cut", Type: api.Int32},
	{Name: "cut_2", Type: api.Int32},
	{Name: "energy", Type: api.Float64},
	{Name: "stderr", Type: api.Float64},
	{Name: "gain", Type: api.Float64},
	{Name: "gain_stderr", Type: api.Float64},
}

// Predict measures what each family of subspaces would gain on a model.
func (k *Evaluator) Predict(_ context.Context, req api.Predict) (*api.Job, error) {
	for _, b := range req.Bases {
		if _, err := catalog.BasisKind("bases", b, basis.Definition.Predicted); err != nil {
			return nil, err
		}
	}
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	d, err := k.Catalog.ImagesFor(m, req.Dataset)
	if err != nil {
		return nil, err
	}
	network, err := m.IsotropicNetwork()
	if err != nil {
		return nil, err
	}
	if req.T == 0 && m.Schedule != nil { // the end of the model's own time
		req.T = m.Schedule.T()
	}
	req.G0 = m.G0(req.G0)
	schema := api.Schema{Columns: predictColumns, Metadata: tables.OfModel(m, "Predict", req)}
	names := basis.Names(nil)
	schema.Metadata["bases"] = strings.Join(names, " ")
	return k.pass(m, schema, func(ctx context.Context, out *tables.Rows, report func(done, total int)) error {
		rows, err := passes.Predict(ctx, network, m.Weights(), d, passes.PredictSettings{
			T: req.T, G0: req.G0, C: req.C, Points: req.Points, Samples: req.Samples, Seed: req.Seed, Bases: req.Bases,
			Progress: report,
		})
		for _, p := range rows {
			perClass, cuts := 0, [2]int{}
			if p.PerClass {
				perClass = 1
			}
			copy(cuts[:], p.Cuts)
			out.Add([]int{slices.Index(names, p.Basis), perClass, p.K, cuts[0], cuts[1]},
				[]float64{p.Energy, p.Stderr, p.Gain, p.GainStderr})
		}
		return err
	}), nil
}

// pass is the job of one pass of a model over a data set, whose rows come at its end.
func (k *Evaluator) pass(
	m *catalog.Model, schema api.Schema,
	measure func(ctx context.Context, out *tables.Rows, report func(done, total int)) error,
) *api.Job {
	return &api.Job{Schema: schema, Rows: -1, Bytes: -1, Run: func(ctx context.Context, emit func(api.Event) error) error {
		if err := m.Hold(); err != nil {
			return err
		}
		defer m.Release()
		out := tables.NewRows(schema.Columns)
		progress := api.Sparsely(func(m api.Meta) { _ = emit(api.Event{Meta: m}) }) // fails when ctx has ended
		err := k.Batcher.Run(ctx, progress, func(report func(done, total int)) error { return measure(ctx, out, report) })
		if err != nil {
			return err
		}
		return out.Send(emit)
	}}
}
