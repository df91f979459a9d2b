package schedules

import (
	"context"
	"fmt"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// fit makes the schedule with coefficients fitted to trajectories of a model.
func (k *Maker) fit(ctx context.Context, req api.FitSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	base, network, err := k.Catalog.ScheduleAndNetwork(req.Schedule, m)
	if err != nil {
		return nil, err
	}
	if base.Statistics == nil || base.Statistics.Rows() != 1 {
		return nil, api.Errorf(api.BadRequest, "The schedule %q must have statistics that all classes share", base.Name).
			WithHint("Make one of kind geodesic with statistics, and without per_class.")
	}
	trajectories := api.SaturatingProduct(3*int64(req.Samples), int64(network.Pixels()))
	if api.SaturatingProduct(trajectories, int64(req.NFE)) > search.MaxFitNumbers {
		return nil, api.Errorf(api.TooLarge, "%d trajectories of %d pixels take too much memory", 3*req.Samples,
			network.Pixels()).WithHint("Ask for fewer samples.")
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	defer m.Release()
	out := newOrigin("", nil, m, &req.Seed)
	out.parts = base.Parts
	if _, err := sampling.NewStart(base, "", m, network.Basis()); err != nil { // its start is of other images
		return nil, err
	}
	grid, path, err := m.OnLevels(req.Grid, base)
	if err != nil {
		return nil, err
	}
	local := solver.Settings{
		Solver: solver.LocalName, Order: req.Order, NFE: req.NFE, LowerOrderFinal: req.LowerOrderFinal,
		Grid: solver.Grid(grid),
	}
	h, w, c := m.ImageSize()
	if _, err := path.Plan(local, -1, h, w, c); err != nil { // the schedule's statistics are of other images
		return nil, err
	}
	ensemble := &sampler.OnDevice{Device: k.Batcher, Network: sampler.Network{Model: network, Weights: m.Weights()}}
	fitted, errs, err := search.Fit(ctx, ensemble, path.Schedule, base.Statistics, search.FitSettings{
		Solver: local, Samples: req.Samples, Seed: req.Seed, Isotropic: req.Isotropic, Start: base.Start,
		Label: func(_ int, seed uint64) int32 { return m.DrawLabel(seed) }, Report: api.ThrottledProgress(progress),
	})
	if err != nil {
		return nil, err
	}
	out.parts.Fitted = fitted
	out.fit = &api.Fit{NFE: len(fitted.Alpha), Samples: req.Samples, Local: errs.Local, Fitted: errs.Fitted}
	began := solver.LocalName
	if req.Isotropic {
		began = "DPM-Solver++"
	}
	out.origin.Summary = worth(solver.FittedName, out.fit.NFE, errs.Fitted/errs.Local, began+" on the same levels",
		fmt.Sprintf("its error beside converged samples, on %d trajectories held back", req.Samples))
	out.parts.Schedule = base.WithSampler(schedule.Sampler{Solver: solver.FittedName, NFE: req.NFE})
	return out, nil
}
