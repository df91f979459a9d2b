package schedules

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
)

// Make makes a schedule and stores it.
func (k *Maker) Make(ctx context.Context, req api.MakeSchedule, progress func(api.Meta)) (any, error) {
	as := req.Of.Stored()
	if err := k.Catalog.FreeSchedule(as.Name, as.Replace); err != nil { // before the work; storeSchedule asks again
		return nil, err
	}
	from, err := k.origin(req.Of)
	if err != nil {
		return nil, err
	}
	var made *newSchedule
	switch kind := req.Of.(type) {
	case *api.GeodesicSchedule:
		made, err = k.geodesic(ctx, *kind, progress)
	case *api.GaussianSchedule:
		made, err = k.gaussian(ctx, *kind, progress)
	case *api.StartSchedule:
		made, err = k.startOn(ctx, *kind, progress)
	case *api.FitSchedule:
		made, err = k.fit(ctx, *kind, progress)
	case *api.FewSchedule:
		made, err = k.few(ctx, *kind, progress)
	case *api.WeightSchedule:
		made, err = scheduleOfWeight(*kind)
	case *api.FormulaSchedule:
		made, err = scheduleByFormula(*kind)
	}
	if err != nil {
		return nil, err
	}
	if from.EnergyBefore, from.EnergyAfter, err = gain(made.parts.Schedule); err != nil {
		return nil, err
	}
	if made.few != nil {
		if from.Few, err = json.Marshal(made.few); err != nil {
			return nil, err
		}
	}
	made.parts.Schedule = k.Catalog.Signed(made.parts.Schedule, from)
	stored, err := catalog.NewSchedule(as.Name, made.parts)
	if err != nil {
		return nil, err
	}
	if err := k.Catalog.StoreSchedule(stored, as.Replace); err != nil {
		return nil, err
	}
	info := catalog.DescribeSchedule("schedule", stored)
	info.Bench, info.Fit = made.bench, made.fit
	for _, r := range made.energies {
		info.Energies = append(info.Energies, api.Energy{
			Energy: r.Energy, Stderr: r.EnergyStderr, Bound: r.Bound,
			BoundStderr: r.BoundStderr,
		})
	}
	return info, nil
}

// scheduleOfWeight makes an isotropic schedule shared by all classes.
func scheduleOfWeight(req api.WeightSchedule) (*newSchedule, error) {
	path, err := schedule.Weighted(req.Sigma, req.Weight, req.C, cmp.Or(req.T, schedule.DefaultT), req.G0, req.Knots)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such schedule: %w", err)
	}
	return plain(schedule.Isotropic(path)), nil
}

// scheduleByFormula makes an isotropic schedule shared by all classes.
func scheduleByFormula(req api.FormulaSchedule) (*newSchedule, error) {
	T := cmp.Or(req.T, schedule.DefaultT)
	theta, err := schedule.InitialTheta(req.Formula, req.Knots, T, req.G0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such schedule: %w", err)
	}
	s, err := schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, req.G0)
	return plain(s), err
}
