package schedules

import (
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// datasetSource names a data set with its hash.
func datasetSource(name string, d *data.Dataset) *schedule.Source {
	return &schedule.Source{Name: name, Hash: d.Hash()}
}

// origin says what a schedule will be made of: the data set and the model as they are now.
func (k *Maker) origin(kind api.ScheduleKind) (schedule.Provenance, error) {
	p := schedule.Provenance{Kind: kind.Kind()}
	var dataset, model string
	var seed uint64
	switch r := kind.(type) {
	case *api.GeodesicSchedule:
		dataset, model, seed = r.Dataset, r.Model, r.Seed
	case *api.GaussianSchedule:
		dataset = r.Dataset
	case *api.StartSchedule:
		dataset, p.Schedule = r.Dataset, r.Schedule.Name
		m := k.Catalog.ModelOf(r.Schedule)
		if r.Model != "" {
			var err error
			if m, err = k.Catalog.Model(r.Model); err != nil {
				return p, err
			}
		}
		if m != nil {
			p.Model = &schedule.Source{Name: m.Name, Hash: m.Hash}
		}
	case *api.FewSchedule:
		dataset, model, seed = r.Dataset, r.Model, r.Seed
	case *api.FitSchedule:
		model, seed = r.Model, r.Seed
	}
	if dataset != "" {
		d, err := k.Catalog.Dataset(dataset)
		if err != nil {
			return p, err
		}
		p.Dataset = datasetSource(dataset, d)
	}
	if model != "" {
		m, err := k.Catalog.Model(model)
		if err != nil {
			return p, err
		}
		p.Model, p.Seed = &schedule.Source{Name: m.Name, Hash: m.Hash}, &seed
	}
	return p, nil
}

// gain returns the energy of EDM's schedule and of s itself under the densities that s stores, as means over its rows;
// nil where it stores none.
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
		paths := make([]*schedule.Path, s.J())
		for j := range paths {
			paths[j] = s.At(r, j)
		}
		add(before, slices.Repeat([]*schedule.Path{edm}, s.J()), f, s.Rows())
		add(after, paths, f, s.Rows())
	}
	return before, after, nil
}

// add adds the energy of one of n rows to their mean.
func add(e *schedule.Estimate, paths []*schedule.Path, f []*schedule.Density, n int) {
	energy, stderr := schedule.Energy(paths, f)
	e.Value += energy / float64(n)
	e.Stderr = math.Hypot(e.Stderr, stderr/float64(n))
}
