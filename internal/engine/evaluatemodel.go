package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
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
	d, err := e.imagesFor(m, req.Dataset)
	if err != nil {
		return nil, err
	}
	s, on, err := e.catalog.ScheduleOn(req.Schedule, m)
	if err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: evaluationColumns, Metadata: modelMetadata(m, "EvaluateModel", req)}
	most := times(int64(s.Rows())*int64(s.J()), int64(req.Points))
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
				Points: req.Points, Samples: req.Samples, C: req.C, Seed: req.Seed, Progress: report})
			return err
		})
		if err != nil {
			return err
		}
		return emit(api.Event{Batch: evaluationBatch(rows), Meta: api.Done(int64(len(rows)), int64(len(rows)))})
	}}, nil
}

// imagesFor returns a data set whose images a model can take.
func (e *Engine) imagesFor(m *catalog.Model, name string) (*data.Dataset, error) {
	d, err := e.catalog.Dataset(name)
	if err != nil {
		return nil, err
	}
	h, w, c := m.ImageSize()
	if d.Height() != h || d.Width() != w || d.Channels() != c {
		return nil, api.Errorf(api.BadRequest, "The images of %q have %d×%d pixels in %d channels, those of model %q %d×%d in %d",
			name, d.Height(), d.Width(), d.Channels(), m.Name, h, w, c)
	}
	if d.Classes() > m.Shape.Labels && m.Shape.Labels > 0 {
		return nil, api.Errorf(api.BadRequest, "The data set %q has %d classes, the model %q %d", name, d.Classes(), m.Name, m.Shape.Labels)
	}
	return d, nil
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

// geodesic makes the schedule of least energy of a model on a data set.
func (e *Engine) geodesic(ctx context.Context, req api.GeodesicSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	d, err := e.imagesFor(m, req.Dataset)
	if err != nil {
		return nil, err
	}
	own, err := m.OwnSchedule()
	if err != nil {
		return nil, err
	}
	if req.T == 0 { // the end of the model's own time
		req.T = own.T()
	}
	family := schedule.Family{PerClass: req.PerClass, Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	b, err := e.catalog.BasisFor(family, d.Height(), d.Width(), nil, m)
	if err != nil {
		return nil, err
	}
	on, err := m.On(b)
	if err != nil {
		return nil, err
	}
	if !catalog.StoredByName(family.Basis) {
		b = nil // its name is enough
	} else {
		family.K = b.K()
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	defer m.Release()
	tell := func(ev api.Event) error { progress(ev.Meta); return nil }
	var g *passes.Geodesic
	err = e.queue.Run(ctx, tell, func(ctx context.Context, report func(done, total int)) (err error) {
		g, err = passes.MakeGeodesic(ctx, on, m.Weights(), d, passes.GeodesicSettings{
			T: req.T, G0: req.G0, C: req.C, Knots: req.Knots, Points: req.Points, Samples: req.Samples, Seed: req.Seed, Family: family, Progress: report})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &newSchedule{schedule: g.Schedule, basis: b, energies: g.Reports}, nil
}
