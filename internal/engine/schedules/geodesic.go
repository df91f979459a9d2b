package schedules

import (
	"cmp"
	"context"
	"fmt"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/passes"
)

// geodesic makes the schedule of least energy of a model on a data set.
func (k *Maker) geodesic(ctx context.Context, req api.GeodesicSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, d, err := k.Catalog.ModelAndImages(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	if req.T == 0 && req.NFE == 0 && m.Schedule != nil { // the end of the model's own time
		req.T = m.Schedule.T()
	}
	req.G0 = m.G0(req.G0)
	family := schedule.Family{PerClass: req.PerClass, Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	b, err := k.Catalog.BasisFor(family, d.Height(), d.Width(), nil, m)
	if err != nil {
		return nil, err
	}
	network, err := m.NetworkOn(b)
	if err != nil {
		return nil, err
	}
	out := newOrigin(req.Dataset, d, m, &req.Seed)
	if !catalog.StoredByName(family.Basis) {
		b = nil // its name is enough
	} else {
		family.K = b.K()
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	defer m.Release()
	set := passes.GeodesicSettings{
		T: req.T, Sampler: solver.Settings{NFE: req.NFE, SecondPoint: cmp.Or(req.SecondPoint, solver.Endpoint)},
		G0: req.G0, C: req.C, Knots: req.Knots, Order: req.Order, Points: req.Points,
		Samples: req.Samples, Seed: req.Seed, Family: family,
	}
	var g *passes.Geodesic
	err = k.Batcher.Run(ctx, api.ThrottledProgress(progress), func(report func(done, total int)) (err error) {
		set.Progress = report
		g, err = passes.MakeGeodesic(ctx, network, m.Weights(), d, set)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.parts = catalog.Parts{Schedule: g.Schedule, Basis: b}
	out.energies = catalog.DescribeEnergies(g.Reports)
	heun := set.Sampler
	heun.Solver, heun.NFE = api.DefaultSolver, cmp.Or(heun.NFE, 9) // runs are judged by 9
	out.origin.Summary, err = k.worthOnLaw(ctx, req.Dataset, d, out.parts, heun, m.Shape.Range)
	if err != nil {
		out.origin.Summary, err = worthByEnergy(g.Schedule, err)
	}
	return out, err
}

// startSchedule makes the schedule that starts from the law of a data set, with the paths of another schedule, which
// end at sigma_max of the request.
func (k *Maker) startSchedule(ctx context.Context, req api.StartSchedule, progress func(api.Meta),
) (out *newSchedule, err error) {
	m := k.Catalog.ModelOf(req.Schedule)
	if req.Model != "" {
		if m, err = k.Catalog.Model(req.Model); err != nil {
			return nil, err
		}
	}
	d, err := k.Catalog.SeenBy(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	out = newOrigin(req.Dataset, d, m, nil)
	out.origin.Schedule = req.Schedule.Name
	base, err := k.Catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	out.parts = base.Parts
	if req.SigmaMax != 0 {
		if out.parts.Schedule, err = base.Truncated(req.SigmaMax); err != nil {
			return nil, api.Errorf(api.BadRequest, "%w", err)
		}
	}
	out.parts.Start, err = measureStart(ctx, req.Dataset, d, req.StartSettings, api.ThrottledProgress(progress))
	if err != nil {
		return nil, err
	}
	var levels schedule.Range
	if m != nil {
		levels = m.Shape.Range
	}
	set := solver.Settings{Solver: "dpmpp2m", NFE: 5, Grid: solver.Grid{Kind: solver.GridPolynomial}}
	out.origin.Summary, err = k.worthOnLaw(ctx, req.Dataset, d, out.parts, set, levels)
	if err != nil {
		out.origin.Summary = fmt.Sprintf("not judged: %v", err)
	}
	return out, nil
}
