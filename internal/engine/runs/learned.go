package runs

import (
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train"
)

// learned returns the schedule of a run in the stage it is at, with where it came from. A schedule that the stage does
// not train, or has not yet, keeps what it had.
func (r *Run) learned(s *schedule.Schedule) *schedule.Schedule {
	cfg := r.cfg
	if s == nil || cfg.Stage == train.Pretrain || len(r.rows) == 0 {
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
	p.Moved = r.training.Moved()
	return r.runs.cfg.Catalog.Signed(s, p)
}
