package solver

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
)

// MaxHistory bounds the length of a Beta, whatever the settings.
const MaxHistory = 4

// MaxStates bounds it for a plan whose history holds the states, too.
const MaxStates = 8

// Stage is one evaluation of the network and the combination that follows it.
type Stage struct {
	G     []float64 // [J] variances at which the network is evaluated
	Time  float64   // schedule time of the evaluation
	Alpha []float64 // [J], or [H·W·C] with Statistics, factor of the running x
	// Beta are, as Alpha, factors of the evaluations by history, newest first; Beta[j][0] multiplies the one just made
	Beta [][]float64
	Step int // solver step, from 0, that this stage ends; −1 for an inner stage
	// [J] standard deviations of fresh noise, x ← x + Σ_j Noise_j P_j ξ, before the evaluation; nil for none
	Noise []float64
}

// Plan is a sampler as numbers: x = Σ_j Init_j P_j ξ for a unit normal ξ, then the
// stages in order.
type Plan struct {
	Init    []float64 // [J], √g_j where the steps start
	Stages  []Stage
	NFE     int  // evaluations of the network: len(Stages)
	History int  // length of the longest Beta
	Data    bool // the history holds denoised images D = x + Σ_j √g_j P_j flow instead of flows
	// States is true where the history holds states as well: E_{2i} is the evaluation i back
	// and E_{2i+1} the x that it was made at.
	States bool
	// Statistics are there where the stages combine in the coordinates of one of their rows,
	// Row, instead of the schedule's subspaces: P_j projects on the coordinate j, of as many
	// as an image has values. Init and G are by subspace all the same.
	Statistics *local.Statistics
	Row        int
	// T lists the times of the steps' ends, the start first; of their geometric-mean noise
	// level where each subspace has nodes of its own.
	T []float64
}

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

// check reports nodes that coincide once they are rounded or clamped.
func (c *clock) check() error {
	for i := 1; i < len(c.u); i++ {
		if !(c.u[i] < c.u[i-1]) {
			return failf("grid", "must have distinct steps, got steps %d and %d both at noise level %v; take fewer steps or "+
				"move sigma_min", i-1, i, c.u[i])
		}
	}
	return nil
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
