package solver

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// MaxHistory bounds the length of a Beta in subspaces, whatever the settings.
const MaxHistory = 4

// Stage is one evaluation of the network and the combination that follows it.
type Stage struct {
	G     []float64 // [J] variances at which the network is evaluated
	Time  float64   // schedule time of the evaluation
	Alpha []float64 // by part of the plan, factor of the running x
	// Beta are, by part, factors of the evaluations by history, newest first; Beta[j][0] multiplies the one just made
	Beta [][]float64
	Step int // solver step, from 0, that this stage ends; −1 for an inner stage
	// [J] standard deviations of fresh noise, x ← x + Σ_j Noise_j P_j ξ, before the evaluation; nil for none
	Noise []float64
}

// Plan is a sampler as numbers: x = Σ_j Init_j P_j ξ for a unit normal ξ, then the stages in order. The parts in which
// stages combine are the schedule's subspaces, or Coordinates.
type Plan struct {
	Init    []float64 // [J], √g_j at the first step
	Stages  []Stage
	NFE     int  // evaluations of the network: len(Stages)
	History int  // length of the longest Beta
	Data    bool // the history holds denoised images D = x + Σ_j √g_j P_j flow instead of flows
	// States is true if the history holds states as well: E_{2i} is the evaluation i back and E_{2i+1} the x that it was
	// made at.
	States bool
	// Coordinates are the parts if they are finer than the subspaces; nil otherwise. Init and G are by subspace always.
	Coordinates *Coordinates
	// T lists the times of the steps' ends, the start first; of their geometric-mean noise level if each subspace has
	// nodes of its own.
	T []float64
}

// Steps returns the number of solver steps.
func (p *Plan) Steps() (n int) {
	for _, stage := range p.Stages {
		n = max(n, stage.Step+1)
	}
	return n
}

// Coordinates are the values of an image in the frequencies of the DCT and, at each frequency, in axes of the channels.
type Coordinates struct {
	H, W, C int
	// Axes are the [H·W·C, C] axes of each row of the statistics; nil entries mean the channels themselves. The plans of
	// one schedule share them.
	Axes [][]float64
	Row  int // of this plan
}

// New returns the plan of one row of a schedule. Settings need not be resolved. Plans of different rows have stages of
// the same number, steps and history. Errors are *Error; a row outside the schedule panics.
func New(s Settings, sch *schedule.Schedule, row int) (*Plan, error) {
	s, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	m := s.method()
	if m.check != nil {
		if err := m.check(s, sch); err != nil {
			return nil, err
		}
	}
	times, err := m.nodes(s, sch, row)
	if err != nil {
		return nil, err
	}
	clocks := make([]*clock, sch.J())
	for j := range clocks {
		clocks[j] = newClock(sch.At(row, j), times[min(j, len(times)-1)], s.eulerEnd())
		if err := clocks[j].check(); err != nil {
			return nil, err
		}
	}
	ownNodes := len(times) > 1
	if s.SChurn > 0 {
		churn(s, sch, row, clocks, ownNodes)
	}
	p := &Plan{Data: m.Denoised, T: times[0]}
	for _, c := range clocks {
		p.Init = append(p.Init, c.u[0])
	}
	var chains [][]link // by part
	if m.ByCoordinate {
		p.Coordinates, p.States = s.coordinates(), true
		chains = m.coordinateLinks(s, clocks[0])
	} else {
		for _, c := range clocks {
			chains = append(chains, m.links(s, c))
		}
	}
	for j := range chains {
		if s.Warmup == WarmupHeun {
			heunStart(chains[j], clocks[j], m.Denoised)
		}
		if s.DenoiseToZero && !m.given {
			denoiseToZero(chains[j], m.Denoised)
		}
		if s.AFS {
			var factor float64
			chains[j], factor = analyticFirstStep(chains[j], m.Denoised)
			p.Init[j] *= factor
		}
	}
	if err := p.assemble(s, chains); err != nil {
		return nil, err
	}
	if ownNodes {
		p.T = make([]float64, len(times[0]))
		for i := range p.T {
			p.T[i] = meanTime(sch, row, len(clocks), func(j int) float64 { return clocks[j].g[i] })
		}
		for i := range p.Stages {
			p.Stages[i].Time = meanTime(sch, row, len(clocks), func(j int) float64 { return p.Stages[i].G[j] })
		}
	}
	return p, nil
}

// nodes returns the times of the nodes: one list, or one for each subspace.
func (m Method) nodes(s Settings, sch *schedule.Schedule, row int) ([][]float64, error) {
	if m.times != nil {
		return m.times(s, sch, row)
	}
	return s.Grid.times(sch, row, s.Steps)
}

// assemble makes the stages of the links of every part.
func (p *Plan) assemble(s Settings, chains [][]link) error {
	for i, first := range chains[0] {
		st := Stage{Time: first.t, Step: first.step}
		st.Alpha, st.Beta = make([]float64, len(chains)), make([][]float64, len(chains))
		for j := range p.Init {
			st.G = append(st.G, chains[j][i].g)
		}
		for j, chain := range chains {
			l := chain[i]
			if !l.finite() {
				return failf("grid", "must have longer steps for solver %s than at noise level %v; take fewer steps", s.Solver,
					math.Sqrt(l.g))
			}
			st.Alpha[j], st.Beta[j] = l.alpha, l.beta
			p.History = max(p.History, len(l.beta))
			if l.noise > 0 && st.Noise == nil {
				st.Noise = make([]float64, len(chains))
			}
			if st.Noise != nil {
				st.Noise[j] = l.noise
			}
		}
		p.Stages = append(p.Stages, st)
	}
	p.NFE = len(p.Stages)
	return nil
}

// finite reports whether a link can be computed: some solvers divide by differences of nodes that round to 0.
func (l link) finite() bool {
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
