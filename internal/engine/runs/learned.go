package runs

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train"
)

// learned returns the schedule of a run's last state, or of its best, with where it came from. A schedule that the run
// does not train, or has not yet, keeps what it had.
func (r *Run) learned(s *schedule.Schedule, best *train.Outcome) *schedule.Schedule {
	cfg := r.cfg
	fixed := cfg.Stage == train.Pretrain || cfg.TrainSchedule != nil && !*cfg.TrainSchedule
	if s == nil || fixed || len(r.rows) == 0 {
		return s
	}
	seed := cfg.Seed
	last := r.rows[len(r.rows)-1]
	p := schedule.Provenance{
		Kind: "learned", Stage: cfg.Stage, Steps: last.Step, Kimg: last.Kimg, Seed: &seed,
		Dataset: &schedule.Source{Name: cfg.Dataset},
	}
	if d, err := r.runs.cfg.Catalog.Dataset(cfg.Dataset); err == nil { // it may be deleted meanwhile
		p.Dataset.Hash = d.Hash()
	}
	if cfg.Model != "" {
		p.Model = &schedule.Source{Name: cfg.Model}
	}
	if best == nil {
		p.Moved = r.training.Moved()
		return r.runs.cfg.Catalog.WithProvenance(s, p)
	}
	p.Steps, p.Kimg, p.Moved = best.Best.Step, best.Best.Kimg, best.Moved
	p.Outcome, _ = json.Marshal(r.gained(best)) // numbers and sentences
	return r.runs.cfg.Catalog.WithProvenance(s, p)
}
