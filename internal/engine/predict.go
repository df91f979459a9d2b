package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

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

// preparePredict measures what bases and classes can gain.
func (e *Engine) preparePredict(_ context.Context, req api.Predict) (*api.Job, error) {
	for _, b := range req.Bases {
		if _, err := catalog.BasisKind("bases", b, basis.Definition.Predicted); err != nil {
			return nil, err
		}
	}
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	d, err := e.catalog.ImagesFor(m, req.Dataset)
	if err != nil {
		return nil, err
	}
	on, err := m.Plain()
	if err != nil {
		return nil, err
	}
	if req.T == 0 { // the end of the model's own time
		own, err := m.OwnSchedule()
		if err != nil {
			return nil, err
		}
		req.T = own.T()
	}
	req.G0 = m.G0(req.G0)
	schema := api.Schema{Columns: predictColumns, Metadata: reply.OfModel(m, "Predict", req)}
	schema.Metadata["bases"] = strings.Join(basis.Names(nil), " ")
	return e.pass(m, schema, func(ctx context.Context, out *reply.Rows, report func(done, total int)) error {
		rows, err := passes.Predict(ctx, on, m.Weights(), d, passes.PredictSettings{
			T: req.T, G0: req.G0, C: req.C, Points: req.Points, Samples: req.Samples, Seed: req.Seed, Bases: req.Bases,
			Progress: report,
		})
		for _, p := range rows {
			perClass, cuts := 0, [2]int{}
			if p.PerClass {
				perClass = 1
			}
			copy(cuts[:], p.Cuts)
			out.Add([]int{slices.Index(basis.Names(nil), p.Basis), perClass, p.K, cuts[0], cuts[1]},
				[]float64{p.Energy, p.Stderr, p.Gain, p.GainStderr})
		}
		return err
	}), nil
}
