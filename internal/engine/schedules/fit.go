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

// fit makes the schedule that carries coefficients fitted to a model's own trajectories.
func (k *Maker) fit(ctx context.Context, req api.FitSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	named, network, err := k.Catalog.ScheduleAndNetwork(req.Schedule, m)
	if err != nil {
		return nil, err
	}
	if named.Statistics == nil || named.Statistics.Rows() != 1 {
		return nil, api.Errorf(api.BadRequest, "The schedule %q must carry statistics that all classes share", named.Name).
			WithHint("Make one of kind geodesic with statistics, and without per_class.")
	}
	if err := checkMemory(3*req.Samples, network, req.NFE, search.MaxFitNumbers); err != nil {
		return nil, err
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	defer m.Release()
	made := &newSchedule{parts: named.Parts}
	if made.origin, err = k.origin("", m); err != nil {
		return nil, err
	}
	made.origin.Seed = &req.Seed
	if _, err := sampling.NewStart(named, "", m, network.Basis()); err != nil { // its start is of other images
		return nil, err
	}
	grid, along, err := m.OnLevels(req.Grid, named)
	if err != nil {
		return nil, err
	}
	local := solver.Settings{
		Solver: solver.LocalName, Order: req.Order, NFE: req.NFE, LowerOrderFinal: req.LowerOrderFinal,
		Grid: solver.Grid(grid),
	}
	h, w, c := m.ImageSize()
	if _, err := along.Plan(local, -1, h, w, c); err != nil { // the schedule's statistics are of other images
		return nil, err
	}
	on := &sampler.OnDevice{Device: k.Batcher, Network: sampler.Network{Model: network, Weights: m.Weights()}}
	fitted, errs, err := search.Fit(ctx, on, along.Schedule, named.Statistics, search.FitSettings{
		Solver: local, Samples: req.Samples, Seed: req.Seed, Isotropic: req.Isotropic, Start: named.Start,
		Label: labelsDrawn(m), Report: api.ThrottledProgress(progress),
	})
	if err != nil {
		return nil, err
	}
	made.parts.Fitted = fitted
	made.fit = &api.Fit{NFE: len(fitted.Alpha), Samples: req.Samples, Local: errs.Local, Fitted: errs.Fitted}
	began := solver.LocalName
	if req.Isotropic {
		began = "DPM-Solver++"
	}
	made.origin.Summary = worth(solver.FittedName, made.fit.NFE, errs.Fitted/errs.Local, began+" on the same levels",
		fmt.Sprintf("its error beside converged samples, on %d trajectories held back", req.Samples))
	made.parts.Schedule = named.WithSampler(schedule.Sampler{Solver: solver.FittedName, NFE: req.NFE})
	return made, nil
}
