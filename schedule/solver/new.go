package solver

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// New returns the plan of one row of a schedule. Settings need not be resolved. Plans
// of different rows have stages of the same number, steps and history. Errors are
// *Error; a row outside the schedule panics.
func New(s Settings, sch *schedule.Schedule, row int) (*Plan, error) {
	s, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	if s.Solver == FittedName {
		return newFitted(s, sch, row)
	}
	times, err := s.Grid.times(sch, row, s.Steps)
	if err != nil {
		return nil, err
	}
	if s.Solver == LocalName {
		return newLocal(s, sch, row, times)
	}
	clocks := make([]*clock, sch.J())
	for j := range clocks {
		clocks[j] = newClock(sch.At(row, j), times[min(j, len(times)-1)], s.eulerEnd())
		if err := clocks[j].check(); err != nil {
			return nil, err
		}
	}
	own := len(times) > 1
	if s.SChurn > 0 {
		churn(s, sch, row, clocks, own)
	}
	m := methods[s.Solver]
	p := &Plan{Init: make([]float64, sch.J()), Data: m.data, T: times[0]}
	chains := make([][]link, sch.J())
	for j, c := range clocks {
		p.Init[j] = c.u[0]
		chains[j] = m.links(s, c)
		if s.Warmup == WarmupHeun {
			heunStart(chains[j], c, m.data)
		}
		if s.DenoiseToZero {
			denoiseToZero(chains[j], m.data)
		}
		if s.AFS {
			var factor float64
			chains[j], factor = analyticFirstStep(chains[j], m.data)
			p.Init[j] *= factor
		}
	}
	if own {
		p.T = make([]float64, len(times[0]))
		for i := range p.T {
			p.T[i] = meanTime(sch, row, len(clocks), func(j int) float64 { return clocks[j].g[i] })
		}
	}
	for i, l := range chains[0] {
		st := Stage{Time: l.t, Step: l.step}
		if own {
			st.Time = meanTime(sch, row, len(chains), func(j int) float64 { return chains[j][i].g })
		}
		for j, chain := range chains {
			if !finite(chain[i]) {
				return nil, failf("grid", "must have longer steps for solver %s than at noise level %v; take fewer steps", s.Solver,
					math.Sqrt(chain[i].g))
			}
			st.G = append(st.G, chain[i].g)
			st.Alpha = append(st.Alpha, chain[i].alpha)
			st.Beta = append(st.Beta, chain[i].beta)
			p.History = max(p.History, len(chain[i].beta))
			if chain[i].noise > 0 && st.Noise == nil {
				st.Noise = make([]float64, len(chains))
			}
			if st.Noise != nil {
				st.Noise[j] = chain[i].noise
			}
		}
		p.Stages = append(p.Stages, st)
	}
	p.NFE = len(p.Stages)
	return p, nil
}

// finite reports whether a link can be computed: some solvers divide by differences of nodes that round to 0.
func finite(l link) bool {
	sum := l.alpha - l.alpha
	for _, v := range l.beta {
		sum += v - v
	}
	return sum == 0
}

// meanTime returns the time of the geometric mean of J variances.
func meanTime(sch *schedule.Schedule, row, j int, g func(int) float64) float64 {
	var log float64
	for k := range j {
		log += math.Log(g(k))
	}
	return sch.TimeOf(row, math.Exp(log/float64(2*j)))
}
