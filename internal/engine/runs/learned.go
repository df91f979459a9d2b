package runs

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train"
)

// withProvenance returns the schedule of a run's last state, or of its best state, with its provenance. A schedule that
// the run has not trained keeps its own.
func (r *Run) withProvenance(s *schedule.Schedule, best *train.Outcome) *schedule.Schedule {
	cfg := r.cfg
	fixed := cfg.Stage == train.Pretrain || cfg.TrainSchedule != nil && !*cfg.TrainSchedule
	if s == nil || fixed || len(r.rows) == 0 {
		return s
	}
	last := r.rows[len(r.rows)-1]
	p := schedule.Provenance{
		Kind: "learned", Stage: cfg.Stage, Steps: last.Step, Kimg: last.Kimg, Seed: &cfg.Seed,
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
	} else {
		p.Steps, p.Kimg, p.Moved = best.Best.Step, best.Best.Kimg, best.Moved
		p.Outcome, _ = json.Marshal(r.describeOutcome(best)) // numbers and sentences
	}
	return r.runs.cfg.Catalog.WithProvenance(s, p)
}

// madeFor returns a schedule that a run has learned with its network, as the schedule of the saved model. The model's
// hash is added when it is written.
func madeFor(s *schedule.Schedule, model string) *schedule.Schedule {
	if s == nil {
		return nil
	}
	p := s.Provenance()
	if p == nil || p.Kind != "learned" || p.Model != nil && p.Model.Hash != "" { // learned before, with another network
		return s
	}
	p.Model = &schedule.Source{Name: model}
	return s.WithProvenance(*p)
}
