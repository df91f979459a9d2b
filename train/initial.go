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
	geodesic, err := passes.MakeGeodesic(ctx, r.model, w, r.data, passes.GeodesicSettings{
		T: r.cfg.T, G0: r.cfg.G0, C: r.cfg.C, Knots: r.cfg.Knots, Seed: r.cfg.Seed,
		Family: schedule.Family{PerClass: r.cfg.Family.PerClass},
	})
	if err != nil {
		return err
	}
	s, err := geodesic.Schedule.Expand(r.sched.Family(), r.sched.Labels(), r.sched.J())
	if err != nil {
		return setting.Errorf("init", "cannot be geodesic: %v", err)
	}
	r.measured = true
	r.startFrom(s)
	return nil
}
