package schedules

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/guides"
	"github.com/anisoflight/anisoflight/internal/engine/starts"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// Maker makes schedules.
type Maker struct {
	Catalog *catalog.Catalog
	Batcher *batch.Batcher
	Queue   *batch.Queue
}

// Make makes a schedule and stores it.
func (k *Maker) Make(ctx context.Context, req api.MakeSchedule, progress func(api.Meta)) (any, error) {
	target := req.Of.Stored()
	// Before the work; storeSchedule asks again.
	if err := k.Catalog.FreeSchedule(target.Name, target.Replace); err != nil {
		return nil, err
	}
	origin, err := k.origin(req.Of)
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
		made, err = k.startSchedule(ctx, *kind, progress)
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
	if origin.EnergyBefore, origin.EnergyAfter, err = gain(made.parts.Schedule); err != nil {
		return nil, err
	}
	if made.few != nil {
		if origin.Few, err = json.Marshal(made.few); err != nil {
			return nil, err
		}
	}
	made.parts.Schedule = k.Catalog.Signed(made.parts.Schedule, origin)
	stored, err := catalog.NewSchedule(target.Name, made.parts)
	if err != nil {
		return nil, err
	}
	if err := k.Catalog.StoreSchedule(stored, target.Replace); err != nil {
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
	return newScheduleOf(schedule.Isotropic(path)), nil
}

// scheduleByFormula makes an isotropic schedule shared by all classes.
func scheduleByFormula(req api.FormulaSchedule) (*newSchedule, error) {
	T := cmp.Or(req.T, schedule.DefaultT)
	theta, err := schedule.InitialTheta(req.Formula, req.Knots, T, req.G0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such schedule: %w", err)
	}
	s, err := schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, req.G0)
	return newScheduleOf(s), err
}

// modelAndImages returns a model, images that fit it, and the end of the model's own schedule.
func (k *Maker) modelAndImages(model, dataset string) (m *catalog.Model, d *data.Dataset, end float64, err error) {
	if m, err = k.Catalog.Model(model); err != nil {
		return nil, nil, 0, err
	}
	if d, err = k.Catalog.ImagesFor(m, dataset); err != nil {
		return nil, nil, 0, err
	}
	own, err := m.OwnSchedule()
	if err != nil {
		return nil, nil, 0, err
	}
	return m, d, own.T(), nil
}

// modelAndSchedule returns a model, and the schedule of a request on it.
func (k *Maker) modelAndSchedule(model string, ref api.ScheduleRef,
) (m *catalog.Model, named catalog.Schedule, on *kernels.Model, err error) {
	if m, err = k.Catalog.Model(model); err != nil {
		return nil, named, nil, err
	}
	named, on, err = k.Catalog.ScheduleOn(ref, m)
	return m, named, on, err
}

// checkMemory bounds the numbers of trajectories, each of some images.
func checkMemory(trajectories int, on *kernels.Model, images int, most int64) error {
	if api.Times(api.Times(int64(trajectories), int64(on.Pixels())), int64(images)) > most {
		return api.Errorf(api.TooLarge, "%d trajectories of %d pixels take too much memory", trajectories, on.Pixels()).
			WithHint("Ask for fewer samples.")
	}
	return nil
}

// newSchedule is a schedule that was made, and what is known about it.
type newSchedule struct {
	parts    checkpoint.Schedule
	fit      *api.Fit
	energies []schedule.Report
	bench    *api.Bench
	few      *api.Few
}

// withPaths returns a schedule with other paths and all else that a schedule holds except fitted coefficients.
func withPaths(named catalog.Schedule, s *schedule.Schedule) *newSchedule {
	parts := named.Stored()
	parts.Schedule, parts.Fitted = s, nil
	return &newSchedule{parts: parts}
}

// newScheduleOf returns a schedule that carries nothing else.
func newScheduleOf(s *schedule.Schedule) *newSchedule {
	return &newSchedule{parts: checkpoint.Schedule{Schedule: s}}
}

// ensemble returns n latents of a model and its guide, whose weights are held, that start as those of a schedule do.
func (k *Maker) ensemble(m *catalog.Model, on *kernels.Model, by *guides.Guide, named catalog.Schedule, seed uint64,
	n int,
) (*batch.Ensemble, error) {
	e := k.Batcher.Ensemble(batch.Network{On: on, Weights: m.Weights()}, m.Shape.Labels, seed, n)
	e.Guide = by.Held()
	from, err := starts.New(named, "", m, on.Basis())
	if from != nil {
		e.Start = from
	}
	return e, err
}

// plansOf makes the plans of a schedule's rows, each once; statistics are of the schedule's labels.
func plansOf(set solver.Settings, sch *schedule.Schedule) func(label int32) (*solver.Plan, error) {
	made := map[int]*solver.Plan{}
	return func(label int32) (p *solver.Plan, err error) {
		row, err := sch.Row(int(label))
		if err == nil && made[row] == nil {
			own := set
			own.StatisticsRow = row
			made[row], err = solver.New(own, sch, row)
		}
		return made[row], err
	}
}
