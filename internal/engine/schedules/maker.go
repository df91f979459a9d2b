package schedules

import (
	"cmp"
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// Maker makes schedules, compares and tabulates them, and reads and writes their files.
type Maker struct {
	Catalog  *catalog.Catalog
	Batcher  *batch.Batcher
	MaxBytes int64 // that a reply may have
}

// newSchedule is a schedule that is made, with its description.
type newSchedule struct {
	parts    catalog.Parts
	origin   schedule.Provenance
	energies []api.Energy
}

// Make makes a schedule and stores it.
func (k *Maker) Make(ctx context.Context, req api.MakeSchedule, progress func(api.Meta),
) (info api.ScheduleInfo, err error) {
	target := req.Of.Target()
	// Before the work; StoreSchedule checks again.
	if err := k.Catalog.FreeSchedule(target.Name, target.Replace); err != nil {
		return info, err
	}
	var out *newSchedule
	switch kind := req.Of.(type) {
	case *api.GeodesicSchedule:
		out, err = k.geodesic(ctx, *kind, progress)
	case *api.StartSchedule:
		out, err = k.startSchedule(ctx, *kind, progress)
	case *api.FormulaSchedule:
		out, err = scheduleByFormula(*kind)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return info, err
	}
	out.origin.Kind = req.Of.Kind()
	if out.origin.EnergyBefore, out.origin.EnergyAfter, err = out.parts.Schedule.Gain(); err != nil {
		return info, err
	}
	out.parts.Schedule = k.Catalog.WithProvenance(out.parts.Schedule, out.origin)
	info, err = k.Catalog.StoreSchedule(target.Name, out.parts, target.Replace)
	info.Energies = out.energies
	return info, err
}

// newOrigin returns a schedule that is made of a data set, a model and a seed, each of which may be nil.
func newOrigin(dataset string, d *data.Dataset, m *catalog.Model, seed *uint64) *newSchedule {
	out := &newSchedule{origin: schedule.Provenance{Seed: seed}}
	if d != nil {
		out.origin.Dataset = &schedule.Source{Name: dataset, Hash: d.Hash()}
	}
	if m != nil {
		out.origin.Model = &schedule.Source{Name: m.Name, Hash: m.Hash}
	}
	return out
}

// scheduleByFormula makes an isotropic schedule shared by all classes.
func scheduleByFormula(req api.FormulaSchedule) (*newSchedule, error) {
	T := cmp.Or(req.T, schedule.DefaultT)
	theta, err := schedule.InitialTheta(req.Formula, req.Knots, T, req.G0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The schedule cannot be made: %w", err)
	}
	s, err := schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, req.G0)
	origin := schedule.Provenance{Summary: "not judged: a formula knows no data"}
	return &newSchedule{parts: catalog.Parts{Schedule: s}, origin: origin}, err
}

// CheckMeasurable limits the memory and the time to measure the moments of images of a size.
func CheckMeasurable(name string, h, w, channels int) error {
	const side, numbers = 1 << 12, 1 << 26
	if max(h, w, channels) <= side && int64(h*w)*int64(channels*channels*channels) <= numbers {
		return nil
	}
	return api.Errorf(api.TooLarge,
		"The images of %q are too large to measure their Gaussian: %d×%d pixels in %d channels", name, h, w, channels)
}

// measureStart estimates the law of a data set.
func measureStart(
	ctx context.Context, name string, d *data.Dataset, req api.StartSettings, report func(done, total int),
) (*start.Start, error) {
	if err := CheckMeasurable(name, d.Height(), d.Width(), d.Channels()); err != nil {
		return nil, err
	}
	return search.MeasureStart(ctx, d, req.PerClass == nil || *req.PerClass, report)
}
