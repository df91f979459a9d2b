package solver

import "github.com/anisoflight/anisoflight/schedule"

// newFitted returns the plan of resolved settings on a row of an isotropic schedule.
func newFitted(s Settings, sch *schedule.Schedule, row int) (*Plan, error) {
	f := s.Fitted
	switch {
	case f == nil || s.Statistics == nil:
		return nil, failf("solver",
			"must be another than %s on a schedule that holds no fitted coefficients; make one of kind fit", FittedName)
	case sch.J() != 1:
		return nil, failf("solver", "must be another than %s on a schedule of %d subspaces; it takes isotropic noise",
			FittedName, sch.J())
	case s.Steps != len(f.Alpha):
		return nil, failf("nfe", "must be %d, which the coefficients of this schedule were fitted for, got %d", len(f.Alpha),
			s.Steps)
	case s.Grid.Kind != GridSchedule:
		return nil, failf("grid", "must be left out with solver %s, which has nodes of its own", FittedName)
	}
	times, err := timesOnRow(f.Sigma, sch, row)
	if err != nil {
		return nil, err
	}
	c := newClock(sch.At(row, 0), times[0], false)
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Plan{
		Init: []float64{c.u[0]}, Data: true, T: c.t, NFE: c.steps(), States: true,
		Statistics: s.Statistics, Row: s.StatisticsRow,
	}
	for i, alpha := range f.Alpha {
		p.Stages = append(p.Stages, Stage{Time: c.t[i], Step: i, G: []float64{c.g[i]}, Alpha: alpha, Beta: f.Beta[i]})
		for _, beta := range f.Beta[i] {
			p.History = max(p.History, len(beta))
		}
	}
	return p, nil
}
