package runs

import (
	"math"

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
	p.EnergyBefore, p.EnergyAfter = Energies(r.rows)
	return r.runs.cfg.Catalog.Signed(s, p)
}

// mostEnergies bounds the steps at either end of a run whose energies are averaged.
const mostEnergies = 50

// Energies estimates the energy of a run's schedule at its beginning and at its end: the means over the first and the
// last tenth of its steps, at most 50 and at least 2, of the energy of each step's own batch. Both are nil for a
// shorter run.
func Energies(rows []train.Row) (before, after *schedule.Estimate) {
	var all []float64
	for _, row := range rows {
		if v := row.Energy; !math.IsNaN(v) && !math.IsInf(v, 0) { // as of a step that was skipped
			all = append(all, v)
		}
	}
	n := min(max(2, len(all)/10), mostEnergies)
	if len(all) < 2*n {
		return nil, nil
	}
	return estimate(all[:n]), estimate(all[len(all)-n:])
}

// estimate returns the mean of independent values and its standard error.
func estimate(values []float64) *schedule.Estimate {
	n := float64(len(values))
	var mean, square float64
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	return &schedule.Estimate{Value: mean, Stderr: math.Sqrt(square / (n - 1) / n)}
}
