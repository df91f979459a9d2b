package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
)

// makeSchedule makes a schedule and stores it.
func (e *Engine) makeSchedule(ctx context.Context, req api.MakeSchedule, progress func(api.Meta)) (any, error) {
	if err := e.freeSchedule(req.Name, req.Replace); err != nil { // before the work; storeSchedule asks again
		return nil, err
	}
	from, err := e.origin(req)
	if err != nil {
		return nil, err
	}
	var s *schedule.Schedule
	var reports []schedule.Report
	told := &gaussianReport{}
	switch req.Kind {
	case "geodesic":
		s, reports, err = e.geodesic(ctx, req, progress)
	case "gaussian":
		s, told, err = e.gaussian(ctx, req, progress)
	default:
		s, err = scheduleByFormula(req)
	}
	if err != nil {
		return nil, err
	}
	if from.EnergyBefore, from.EnergyAfter, err = gain(s); err != nil {
		return nil, err
	}
	s = e.noted(s, from)
	if err := e.storeSchedule(req.Name, s, nil, req.Replace); err != nil {
		return nil, err
	}
	info := describeSchedule(req.Name, "schedule", s)
	info.Bench, info.Refined = told.bench, told.refined
	for _, r := range reports {
		info.Energies = append(info.Energies, api.Energy{Energy: r.Energy, Stderr: r.EnergyStderr, Bound: r.Bound, BoundStderr: r.BoundStderr})
	}
	return info, nil
}

// scheduleByFormula makes an isotropic schedule shared by all classes.
func scheduleByFormula(req api.MakeSchedule) (*schedule.Schedule, error) {
	T := req.T
	if T == 0 {
		T = schedule.DefaultT
	}
	theta, err := schedule.InitialTheta(req.Kind, req.Knots, T, req.G0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such schedule: %w", err)
	}
	return schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, req.G0)
}
