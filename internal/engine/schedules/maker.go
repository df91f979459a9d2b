package schedules

import (
	"cmp"
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// Maker makes schedules, benches and tabulates them, and reads and writes their files.
type Maker struct {
	Catalog  *catalog.Catalog
	Batcher  *batch.Batcher
	MaxBytes int64 // that a reply may have
}

// newSchedule is a schedule that was made, and what is known about it.
type newSchedule struct {
	parts    catalog.Parts
	origin   schedule.Provenance
	fit      *api.Fit
	energies []api.Energy
	bench    *api.Bench
}

// Make makes a schedule and stores it.
func (k *Maker) Make(ctx context.Context, req api.MakeSchedule, progress func(api.Meta),
) (info api.ScheduleInfo, err error) {
	target := req.Of.Target()
	// Before the work; StoreSchedule checks again.
	if err := k.Catalog.FreeSchedule(target.Name, target.Replace); err != nil {
		return info, err
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
	case *api.FormulaSchedule:
		made, err = scheduleByFormula(*kind)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return info, err
	}
	made.origin.Kind = req.Of.Kind()
	if made.origin.EnergyBefore, made.origin.EnergyAfter, err = made.parts.Schedule.Gain(); err != nil {
		return info, err
	}
	made.parts.Schedule = k.Catalog.WithProvenance(made.parts.Schedule, made.origin)
	stored, err := catalog.NewSchedule(target.Name, made.parts)
	if err != nil {
		return info, err
	}
	if err := k.Catalog.StoreSchedule(stored, target.Replace); err != nil {
		return info, err
	}
	info = catalog.DescribeSchedule("schedule", stored)
	info.Bench, info.Fit, info.Energies = made.bench, made.fit, made.energies
	return info, nil
}

// origin says what a schedule will be made of: the data set and the model as they are now, each of which may be left
// out.
func (k *Maker) origin(dataset string, m *catalog.Model) (p schedule.Provenance, err error) {
	if dataset != "" {
		d, err := k.Catalog.Dataset(dataset)
		if err != nil {
			return p, err
		}
		p.Dataset = &schedule.Source{Name: dataset, Hash: d.Hash()}
	}
	if m != nil {
		p.Model = &schedule.Source{Name: m.Name, Hash: m.Hash}
	}
	return p, nil
}

// scheduleByFormula makes an isotropic schedule shared by all classes.
func scheduleByFormula(req api.FormulaSchedule) (*newSchedule, error) {
	T := cmp.Or(req.T, schedule.DefaultT)
	theta, err := schedule.InitialTheta(req.Formula, req.Knots, T, req.G0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such schedule: %w", err)
	}
	s, err := schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, req.G0)
	origin := schedule.Provenance{Summary: "not judged: a formula knows no data; BenchSchedule compares it " +
		"with EDM's levels on those of a data set"}
	return &newSchedule{parts: catalog.Parts{Schedule: s}, origin: origin}, err
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

// checkMemory bounds the numbers of trajectories, each of some images.
func checkMemory(trajectories int, on *kernels.Model, images int, most int64) error {
	if api.SaturatingProduct(api.SaturatingProduct(int64(trajectories), int64(on.Pixels())), int64(images)) > most {
		return api.Errorf(api.TooLarge, "%d trajectories of %d pixels take too much memory", trajectories, on.Pixels()).
			WithHint("Ask for fewer samples.")
	}
	return nil
}
