package engine

import (
	"math"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/data"
)

// noted gives a new schedule with where it came from, dated and signed.
func (e *Engine) noted(s *schedule.Schedule, p schedule.Provenance) *schedule.Schedule {
	p.Program, p.Created = "anisoflight "+e.cfg.Version, time.Now().UTC().Truncate(time.Second)
	return s.WithProvenance(p)
}

// datasetSource names a data set with its hash.
func datasetSource(name string, d *data.Dataset) *schedule.Source {
	return &schedule.Source{Name: name, Hash: d.Hash()}
}

// origin says what a schedule will be made of: the data set and the model as they are now.
func (e *Engine) origin(kind api.ScheduleKind) (schedule.Provenance, error) {
	p := schedule.Provenance{Kind: kind.Kind()}
	var dataset, model string
	var seed uint64
	switch r := kind.(type) {
	case *api.GeodesicSchedule:
		dataset, model, seed = r.Dataset, r.Model, r.Seed
	case *api.GaussianSchedule:
		if dataset = r.Dataset; r.Refine != nil {
			model, seed = r.Refine.Model, r.Refine.Seed
		}
	case *api.StepsSchedule:
		model, seed = r.Model, r.Seed
	}
	if dataset != "" {
		d, err := e.datasetNamed(dataset)
		if err != nil {
			return p, err
		}
		p.Dataset = datasetSource(dataset, d)
	}
	if model != "" {
		m, err := e.modelNamed(model)
		if err != nil {
			return p, err
		}
		p.Model, p.Seed = &schedule.Source{Name: m.name, Hash: m.hash}, &seed
	}
	return p, nil
}

// gain gives the energy of EDM's schedule and of s itself under the densities that s stores, as means over its rows; nil
// where it stores none.
func gain(s *schedule.Schedule) (before, after *schedule.Estimate, err error) {
	densities := s.Energy()
	if densities == nil {
		return nil, nil, nil
	}
	theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, s.T(), s.At(0, 0).G0())
	if err != nil {
		return nil, nil, err
	}
	edm := theta.Path(s.T(), s.At(0, 0).G0())
	before, after = &schedule.Estimate{}, &schedule.Estimate{}
	for r, f := range densities {
		own := make([]*schedule.Path, s.J())
		for j := range own {
			own[j] = s.At(r, j)
		}
		add(before, slices.Repeat([]*schedule.Path{edm}, s.J()), f, s.Rows())
		add(after, own, f, s.Rows())
	}
	return before, after, nil
}

// add adds the energy of one of n rows to their mean.
func add(e *schedule.Estimate, paths []*schedule.Path, f []*schedule.Density, n int) {
	energy, stderr := schedule.Energy(paths, f)
	e.Value += energy / float64(n)
	e.Stderr = math.Hypot(e.Stderr, stderr/float64(n))
}

// learned gives the schedule of a run in the stage it is at, with where it came from. A schedule that the stage does not
// train, or has not yet, keeps what it had.
func (r *run) learned(s *schedule.Schedule, cfg train.Config, rows [][]float64) *schedule.Schedule {
	if s == nil || cfg.Stage == train.Pretrain || len(rows) == 0 {
		return s
	}
	seed := cfg.Seed
	last := rows[len(rows)-1]
	p := schedule.Provenance{
		Kind: "learned", Stage: cfg.Stage, Steps: int64(valueOf(last, "step")), Kimg: valueOf(last, "kimg"), Seed: &seed,
		Dataset: &schedule.Source{Name: cfg.Dataset},
	}
	if d, err := r.e.datasetNamed(cfg.Dataset); err == nil { // it may be deleted meanwhile
		p.Dataset.Hash = d.Hash()
	}
	if cfg.Model != "" {
		p.Model = &schedule.Source{Name: cfg.Model}
	}
	p.EnergyBefore, p.EnergyAfter = energies(rows)
	return r.e.noted(s, p)
}

// valueOf gives a value of a training row by its name.
func valueOf(row []float64, name string) float64 { return row[slices.Index(train.RowColumns, name)] }

// mostEnergies bounds the steps at either end of a run whose energies are averaged.
const mostEnergies = 50

// energies estimates the energy of a run's schedule at its beginning and at its end: the means over the first and the last
// tenth of its steps, at most 50 and at least 2, of the energy of each step's own batch. Both are nil of shorter runs.
func energies(rows [][]float64) (before, after *schedule.Estimate) {
	var all []float64
	for _, row := range rows {
		if v := valueOf(row, "energy"); !math.IsNaN(v) && !math.IsInf(v, 0) { // as of a step that was skipped
			all = append(all, v)
		}
	}
	n := min(max(2, len(all)/10), mostEnergies)
	if len(all) < 2*n {
		return nil, nil
	}
	return estimate(all[:n]), estimate(all[len(all)-n:])
}

// estimate gives the mean of independent values and its standard error.
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

// madeFor gives a schedule that a run has learned with its network, as the schedule of the model that the network is saved
// as. The hash of that is added when it is written.
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
