package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// makeSchedule makes a schedule and stores it.
func (e *Engine) makeSchedule(ctx context.Context, req api.MakeSchedule, progress func(api.Meta)) (any, error) {
	as := req.Of.Stored()
	if err := e.catalog.FreeSchedule(as.Name, as.Replace); err != nil { // before the work; storeSchedule asks again
		return nil, err
	}
	from, err := e.origin(req.Of)
	if err != nil {
		return nil, err
	}
	var made *newSchedule
	switch kind := req.Of.(type) {
	case *api.GeodesicSchedule:
		made, err = e.geodesic(ctx, *kind, progress)
	case *api.GaussianSchedule:
		made, err = e.gaussian(ctx, *kind, progress)
	case *api.StepsSchedule:
		made, err = e.chooseSteps(ctx, *kind, progress)
	case *api.FormulaSchedule:
		made, err = scheduleByFormula(*kind)
	}
	if err != nil {
		return nil, err
	}
	if from.EnergyBefore, from.EnergyAfter, err = gain(made.schedule); err != nil {
		return nil, err
	}
	s := e.catalog.Signed(made.schedule, from)
	if err := e.catalog.StoreSchedule(as.Name, s, made.basis, as.Replace); err != nil {
		return nil, err
	}
	info := catalog.DescribeSchedule(as.Name, "schedule", s)
	info.Bench, info.Refined, info.Steps = made.bench, made.refined, made.steps
	for _, r := range made.energies {
		info.Energies = append(info.Energies, api.Energy{Energy: r.Energy, Stderr: r.EnergyStderr, Bound: r.Bound, BoundStderr: r.BoundStderr})
	}
	return info, nil
}

// newSchedule is a schedule that was made, and what is known about it.
type newSchedule struct {
	schedule *schedule.Schedule
	basis    *basis.Basis // dense, where its family does not say it all
	energies []schedule.Report
	bench    *api.Bench
	refined  *api.Refined
	steps    *api.Steps
}

// scheduleByFormula makes an isotropic schedule shared by all classes.
func scheduleByFormula(req api.FormulaSchedule) (*newSchedule, error) {
	T := req.T
	if T == 0 {
		T = schedule.DefaultT
	}
	theta, err := schedule.InitialTheta(req.Formula, req.Knots, T, req.G0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such schedule: %w", err)
	}
	s, err := schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, req.G0)
	return &newSchedule{schedule: s}, err
}
