package schedules

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// residual measures a model, whose weights are held, in one pass over a data set.
func (k *Maker) residual(ctx context.Context, m *catalog.Model, on *kernels.Model, d *data.Dataset,
	set passes.GeodesicSettings, progress func(api.Meta),
) (g *passes.Geodesic, err error) {
	tell := func(ev api.Event) error { progress(ev.Meta); return nil }
	err = k.Queue.Run(ctx, tell, func(ctx context.Context, report func(done, total int)) (err error) {
		set.Progress = report
		g, err = passes.MakeGeodesic(ctx, on, m.Weights(), d, set)
		return err
	})
	return g, err
}

// geodesic makes the schedule of least energy of a model on a data set.
func (k *Maker) geodesic(ctx context.Context, req api.GeodesicSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, d, end, err := k.onImages(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	if req.T == 0 { // the end of the model's own time
		req.T = end
	}
	req.G0 = m.G0(req.G0)
	family := schedule.Family{PerClass: req.PerClass, Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	b, err := k.Catalog.BasisFor(family, d.Height(), d.Width(), nil, m)
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
	g, err := k.residual(ctx, m, on, d, passes.GeodesicSettings{
		T: req.T, G0: req.G0, C: req.C, Knots: req.Knots, Points: req.Points, Samples: req.Samples, Seed: req.Seed,
		Family: family, Statistics: req.Statistics,
	}, progress)
	if err != nil {
		return nil, err
	}
	made := plain(g.Schedule)
	made.parts.Basis, made.parts.Statistics, made.energies = b, g.Statistics, g.Reports
	return made, nil
}
