package schedules

import (
	"context"
	"errors"
	"iter"

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
	made := &newSchedule{schedule: named.Schedule, basis: named.Basis}
	if named.Statistics != nil {
		made.statistics = named.Statistics.Statistics
	}
	if len(req.SigmaMax) > 0 {
		if made.schedule, err = named.Until(req.SigmaMax); err != nil {
			return nil, api.Errorf(api.BadRequest, "%w", err)
		}
	}
	d, err := k.Catalog.Dataset(req.Dataset)
	if err != nil {
		return nil, err
	}
	made.start, err = measureStart(ctx, req.Dataset, d, req.StartSettings, api.Sparsely(progress))
	return made, err
}

// measureStart estimates the law of a data set in one pass.
func measureStart(
	ctx context.Context, name string, d *data.Dataset, req api.StartSettings, report func(done, total int),
) (*start.Start, error) {
	if err := checkMeasurable(name, d); err != nil {
		return nil, err
	}
	set := start.Settings{Covariance: req.Covariance, Rank: req.Rank, Cuts: req.Cuts, PerClass: true}
	if req.PerClass != nil {
		set.PerClass = *req.PerClass
	}
	if nu := req.Shrinkage; nu != nil {
		if set.Shrinkage = *nu; set.Shrinkage == 0 {
			set.Shrinkage = -1
		}
	}
	im := make([]float32, d.Pixels())
	var unread error
	var images iter.Seq2[int, []float32] = func(yield func(int, []float32) bool) {
		for i := range d.Len() {
			unread = d.Image(i, false, im)
			if unread != nil || ctx.Err() != nil || !yield(int(d.Label(i)), im) {
				return
			}
			report(i+1, d.Len())
		}
	}
	s, err := start.Measure(d.Height(), d.Width(), d.Channels(), images, set)
	return s, errors.Join(unread, ctx.Err(), err)
}
