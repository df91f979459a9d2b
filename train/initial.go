package train

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/setting"
)

// initGeodesic and initTable are the starts of a schedule that are no formula: measured
// on the run's own network and data before the first step, and a schedule by name.
const (
	initGeodesic = "geodesic"
	initTable    = "table"
)

// Inits lists what Config.Init may be.
var Inits = append(slices.Clone(schedule.Initial), initGeodesic, initTable)

// checkInit checks the start of the schedule.
func (c Config) checkInit() error {
	switch {
	case c.Init == initTable && c.Schedule == "":
		return setting.Errorf("schedule", "must name a schedule where init is table, got none")
	case c.Init == initGeodesic && c.Schedule != "":
		return setting.Errorf("init", "must be left out to start from the schedule %q, got geodesic, which is measured",
			c.Schedule)
	case c.Init == initGeodesic && c.Stage == Pretrain:
		return setting.Errorf("init", "must not be geodesic in the stage pretrain, which trains no schedule")
	case c.Init == "" || c.Init == initTable || c.Init == initGeodesic:
		return nil
	}
	return setting.OneOf("init", c.Init, Inits...)
}

// measureStart puts the geodesic in the place of the schedule, before the first step of
// a run that starts with it: of each class where the family has schedules per class, the
// same in every subspace.
func (r *Run) measureStart(ctx context.Context) error {
	if r.cfg.Init != initGeodesic || r.step > 0 || r.measured {
		return nil
	}
	w, err := r.trainer.Publish(ctx)
	if err != nil {
		return err
	}
	defer w.Release()
	geodesic, err := passes.MakeGeodesic(ctx, r.model, w, r.data, r.startSettings())
	if err != nil {
		return err
	}
	return r.startAt(geodesic)
}

// startSettings are those of the geodesic that a stage starts from.
func (l *learner) startSettings() passes.GeodesicSettings {
	return passes.GeodesicSettings{
		T: l.cfg.T, G0: l.cfg.G0, C: l.cfg.C, Knots: l.cfg.Knots, Seed: l.cfg.Seed,
		Family: schedule.Family{PerClass: l.cfg.Family.PerClass},
	}
}

// startAt puts a geodesic in the place of the schedule: the same in every subspace.
func (l *learner) startAt(g *passes.Geodesic) error {
	s, err := g.Schedule.Expand(l.sched.Family(), l.sched.Labels(), l.sched.J())
	if err != nil {
		return setting.Errorf("init", "cannot be geodesic: %v", err)
	}
	l.measured = true
	l.startFrom(s)
	return nil
}
