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

// EvaluateModel measures the loss and the residual of a model on a schedule.
func (k *Evaluator) EvaluateModel(_ context.Context, req api.EvaluateModel) (*api.Job, error) {
	m, d, err := k.Catalog.ModelAndImages(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	s, network, err := k.Catalog.ScheduleAndNetwork(req.Schedule, m)
	if err != nil {
		return nil, err
	}
	schema := tables.SchemaOf[api.EvaluationRow](tables.OfModel(m, "EvaluateModel", req))
	most := api.SaturatingProduct(int64(s.Rows())*int64(s.J()), int64(req.Points))
	if _, err := tables.Price(k.MaxBytes, schema, most); err != nil {
		return nil, err
	}
	measure := func(ctx context.Context, report func(done, total int)) (out []api.EvaluationRow, err error) {
		rows, err := passes.Evaluate(ctx, network, m.Weights(), d, s.Schedule, passes.EvaluateSettings{
			Points: req.Points, Samples: req.Samples, C: req.C, Seed: req.Seed, Progress: report,
		})
		for _, r := range rows {
			out = append(out, api.EvaluationRow(r))
		}
		return out, err
	}
	return pass(k, m, schema, measure), nil
}

// Predict measures how much each family of subspaces would lower the energy of a model.
func (k *Evaluator) Predict(_ context.Context, req api.Predict) (*api.Job, error) {
	for _, b := range req.Bases {
		if _, err := catalog.BasisKind("bases", b, basis.Definition.Predicted); err != nil {
			return nil, err
		}
	}
	m, d, err := k.Catalog.ModelAndImages(req.Model, req.Dataset)
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
	schema := tables.SchemaOf[api.PredictionRow](tables.OfModel(m, "Predict", req))
	names := basis.Names(nil)
	schema.Metadata["bases"] = strings.Join(names, " ")
	measure := func(ctx context.Context, report func(done, total int)) (out []api.PredictionRow, err error) {
		rows, err := passes.Predict(ctx, network, m.Weights(), d, passes.PredictSettings{
			T: req.T, G0: req.G0, C: req.C, Points: req.Points, Samples: req.Samples, Seed: req.Seed, Bases: req.Bases,
			Progress: report,
		})
		for _, p := range rows {
			perClass, cuts := int32(0), [2]int{}
			if p.PerClass {
				perClass = 1
			}
			copy(cuts[:], p.Cuts)
			out = append(out, api.PredictionRow{
				Basis: int32(slices.Index(names, p.Basis)), PerClass: perClass, K: int32(p.K), Cut: int32(cuts[0]),
				Cut2: int32(cuts[1]), Energy: p.Energy, Stderr: p.Stderr, Gain: p.Gain, GainStderr: p.GainStderr,
			})
		}
		return out, err
	}
	return pass(k, m, schema, measure), nil
}

// pass returns the job that measures a model on a data set. Its rows come at the end.
func pass[R any](
	k *Evaluator, m *catalog.Model, schema api.Schema,
	measure func(ctx context.Context, report func(done, total int)) ([]R, error),
) *api.Job {
	return &api.Job{Schema: schema, Rows: -1, Bytes: -1, Run: func(ctx context.Context, emit func(api.Event) error) error {
		if err := m.Hold(); err != nil {
			return err
		}
		defer m.Release()
		var out []R
		progress := api.ThrottledProgress(func(m api.Meta) { _ = emit(api.Event{Meta: m}) }) // fails when ctx has ended
		err := k.Batcher.Run(ctx, progress, func(report func(done, total int)) (err error) {
			out, err = measure(ctx, report)
			return err
		})
		if err != nil {
			return err
		}
		return tables.SendRows(ctx, slices.Values(out), int64(len(out)), emit)
	}}
}
