package schedules

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// startOn makes the schedule with the paths of another, cut off where the request says, that starts from the law of a
// data set. It needs no device.
func (k *Maker) startOn(ctx context.Context, req api.StartSchedule, progress func(api.Meta)) (*newSchedule, error) {
	named, err := k.Catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	made := along(named, named.Schedule)
	if len(req.SigmaMax) > 0 {
		if made.parts.Schedule, err = named.Until(req.SigmaMax); err != nil {
			return nil, api.Errorf(api.BadRequest, "%w", err)
		}
	}
	d, err := k.Catalog.SeenBy(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	made.parts.Start, err = measureStart(ctx, req.Dataset, d, req.StartSettings, api.Sparsely(progress))
	return made, err
}

// measureStart estimates the law of a data set in one pass.
func measureStart(
	ctx context.Context, name string, d *data.Dataset, req api.StartSettings, report func(done, total int),
) (s *start.Start, err error) {
	if err := checkMeasurable(name, d); err != nil {
		return nil, err
	}
	err = pass(ctx, d, report, intoStart(&s, d, req))
	return s, err
}

// intoStart returns the reader that estimates the law of images into *s.
func intoStart(s **start.Start, d *data.Dataset, req api.StartSettings) func(images) error {
	set := start.Settings{
		Covariance: req.Covariance, Rank: req.Rank, Cuts: req.Cuts, PerClass: true, Units: d.Normalization(),
	}
	if req.PerClass != nil {
		set.PerClass = *req.PerClass
	}
	if nu := req.Shrinkage; nu != nil {
		if set.Shrinkage = *nu; set.Shrinkage == 0 {
			set.Shrinkage = -1
		}
	}
	return func(all images) (err error) {
		*s, err = start.Measure(d.Height(), d.Width(), d.Channels(), all, set)
		return err
	}
}
