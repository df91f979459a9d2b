package schedules

import (
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

// onImages returns a model, images that fit it, and the end of the model's own schedule.
func (k *Maker) onImages(model, dataset string) (m *catalog.Model, d *data.Dataset, end float64, err error) {
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

// onSchedule returns a model, and the schedule of a request on it.
func (k *Maker) onSchedule(model string, ref api.ScheduleRef,
) (m *catalog.Model, named catalog.Schedule, on *kernels.Model, err error) {
	if m, err = k.Catalog.Model(model); err != nil {
		return nil, named, nil, err
	}
	named, on, err = k.Catalog.ScheduleOn(ref, m)
	return m, named, on, err
}

// checkMemory bounds the numbers that so many trajectories take, each those of some images.
func checkMemory(trajectories int, on *kernels.Model, images int, most int64) error {
	if api.Times(api.Times(int64(trajectories), int64(on.Pixels())), int64(images)) > most {
		return api.Errorf(api.TooLarge, "%d trajectories of %d pixels take too much memory", trajectories, on.Pixels()).
			WithHint("Ask for fewer samples.")
	}
	return nil
}

// mostTeacher bounds the numbers that a teacher's trajectories take.
const mostTeacher = 1 << 26

// newSchedule is a schedule that was made, and what is known about it.
type newSchedule struct {
	parts    checkpoint.Schedule
	fit      *api.Fit
	energies []schedule.Report
	bench    *api.Bench
	few      *api.Few
}

// along returns a schedule on the paths of another, with all else that the other holds but fitted coefficients.
func along(named catalog.Schedule, s *schedule.Schedule) *newSchedule {
	parts := named.Stored()
	parts.Schedule, parts.Fitted = s, nil
	return &newSchedule{parts: parts}
}

// plain returns a schedule that nothing travels with.
func plain(s *schedule.Schedule) *newSchedule {
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
