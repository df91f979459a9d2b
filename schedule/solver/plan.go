// Package solver turns a schedule, a solver and a time grid into a plan: the noise levels at which the network is
// evaluated, and the coefficients that combine its evaluations.
//
// The probability flow is dx = −Σ_j P_j flow · d√g_j, so subspace j runs on its own clock u_j = √g_j. Every linear
// multistep or Runge–Kutta method is then a sequence of stages
//
//	x ← x + Σ_j Noise_j P_j ξ     with churn alone
//	E_0 = flow(x, G)              evaluate, E_0 pushed in front of the history
//	x ← Σ_p P_p (α_p x + Σ_i β_{pi} E_i)
//
// with scalar coefficients by part p of the plan, computed here in float64. The parts are the schedule's subspaces, or
// finer: a search makes Coefficients for every band of the DCT's frequencies. Samples on different rows of a per-class
// schedule have plans of equal shape and different numbers.
//
// A solver is a function from the clock of a subspace to its links, and a row of register.go with its facts: orders,
// history, whether it takes churn. Help texts, errors and the test of orders use them.
//
//	register.go    the solvers and their facts
//	settings.go    what a request may say, and its defaults
//	grid.go        where the steps lie
//	plan.go        New, which makes the stages
//	options.go     warmup and denoise_to_zero, for any solver
//	rungekutta.go, adams.go, dpmpp.go, unipc.go    the solvers
//	local.go       plans from coefficients, and those of a search to begin with
//
// Begin with plan.go.
package solver

import (
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// MaxHistory is the largest length of a Beta by subspace, for any settings.
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
	// Guidance is the factor r of what guidance adds to this evaluation: it has the scale 1 + r (s − 1). nil: 1.
	Guidance *float64
}

// Plan is a sampler as numbers: x = Σ_j Init_j P_j ξ for a unit normal ξ, then the stages in order. Stages combine
// evaluations by part: the schedule's subspaces, or Coordinates.
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
	T           []float64 // times of the steps' ends, the start first
}

// Steps returns the number of solver steps.
func (p *Plan) Steps() (n int) {
	for _, stage := range p.Stages {
		n = max(n, stage.Step+1)
	}
	return n
}

// Coordinates are the values of an image in bands of the DCT's frequencies and, in each band, in axes of the channels.
type Coordinates struct {
	basis.Bands
	// Axes are the [B·C, C] axes of each plan of a sampler, which share them; nil entries mean the channels themselves.
	Axes [][]float64
	Row  int // of this plan
}

// New returns the plan of one row of a schedule. Settings need not be resolved. Plans of different rows have the same
// structure: number of stages, steps and history. Errors are *Error; it panics if the schedule does not have the row.
func New(s Settings, sch *schedule.Schedule, row int) (*Plan, error) {
	s, clocks, err := s.clocks(sch, row)
	if err != nil {
		return nil, err
	}
	return s.plan(clocks)
}

// Tails returns, for each step k = 1 … N − 1 of the plan that New returns, the leading stages of a sampler that begins
// there without warmup: those whose Alpha and Beta differ from the plan's, while the history fills. It returns nil for
// solvers that keep nothing from step to step.
func Tails(s Settings, sch *schedule.Schedule, row int) ([][]Stage, error) {
	s, clocks, err := s.clocks(sch, row)
	if err != nil || s.method().Churns {
		return nil, err
	}
	whole, err := s.plan(clocks)
	if err != nil {
		return nil, err
	}
	s.Warmup = WarmupEuler
	tails := make([][]Stage, clocks[0].steps()-1)
	for k := range tails {
		for _, c := range clocks {
			c.t, c.g, c.u, c.maxLinks = c.t[1:], c.g[1:], c.u[1:], whole.History
		}
		tail, err := s.plan(clocks)
		if err != nil {
			return nil, err
		}
		tails[k] = tail.Stages
		for n := len(tails[k]); n > 0 && tails[k][n-1].Combines(whole.Stages[k+n]); n-- {
			tails[k] = tails[k][:n-1]
		}
	}
	return tails, nil
}

// Combines reports whether two stages have the same coefficients.
func (s Stage) Combines(other Stage) bool {
	return slices.Equal(s.Alpha, other.Alpha) && slices.EqualFunc(s.Beta, other.Beta, slices.Equal)
}

// Evaluates reports whether two stages evaluate the network in the same way.
func (s Stage) Evaluates(other Stage) bool {
	return s.GuidedAs(other) && slices.Equal(s.G, other.G)
}

// GuidedAs reports whether two stages set the same guidance, or none.
func (s Stage) GuidedAs(other Stage) bool {
	if s.Guidance == nil || other.Guidance == nil {
		return s.Guidance == other.Guidance
	}
	return *s.Guidance == *other.Guidance
}

// Guides reports whether the plan sets the guidance of its evaluations.
func (p *Plan) Guides() bool {
	return slices.ContainsFunc(p.Stages, func(s Stage) bool { return s.Guidance != nil })
}

// clocks resolves the settings and returns the clock of each subspace.
func (s Settings) clocks(sch *schedule.Schedule, row int) (Settings, []*clock, error) {
	s, err := s.Resolve()
	if err != nil {
		return s, nil, err
	}
	times, err := s.Grid.times(sch, row, s.Steps)
	if err != nil {
		return s, nil, err
	}
	clocks := make([]*clock, sch.J())
	for j := range clocks {
		clocks[j] = newClock(sch.At(row, j), times, s.eulerEnd())
		if err := clocks[j].check(); err != nil {
			return s, nil, err
		}
	}
	if s.SChurn > 0 {
		churn(s, sch, row, clocks)
	}
	return s, clocks, nil
}

// plan returns the plan of resolved settings on clocks.
func (s Settings) plan(clocks []*clock) (*Plan, error) {
	m := s.method()
	p := &Plan{Data: m.Denoised, T: clocks[0].t}
	for _, c := range clocks {
		p.Init = append(p.Init, c.u[0])
	}
	chains := make([][]link, len(clocks))
	for j, c := range clocks {
		chains[j] = m.links(s, c)
		if s.Warmup == WarmupHeun {
			heunStart(chains[j], c, m.Denoised)
		}
		if s.DenoiseToZero && c.linkCount() == c.steps() {
			denoiseToZero(chains[j], m.Denoised)
		}
	}
	return p, p.assemble("solver "+s.Solver, chains)
}

// Plans returns a function that returns the plan of a label's row and makes each plan once.
func Plans(s Settings, sch *schedule.Schedule) func(label int32) (*Plan, error) {
	made := map[int]*Plan{}
	return func(label int32) (p *Plan, err error) {
		row, err := sch.Row(int(label))
		if err == nil && made[row] == nil {
			made[row], err = New(s, sch, row)
		}
		return made[row], err
	}
}

// assemble sets the stages from the links of every part, which a solver made.
func (p *Plan) assemble(maker string, chains [][]link) error {
	for i, first := range chains[0] {
		st := Stage{Time: first.t, Step: first.step}
		st.Alpha, st.Beta = make([]float64, len(chains)), make([][]float64, len(chains))
		for j := range p.Init {
			st.G = append(st.G, chains[j][i].g)
		}
		for j, chain := range chains {
			l := chain[i]
			if !l.finite() {
				return failf("grid", "must have longer steps for %s than at noise level %v; take fewer steps", maker,
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

// finite reports whether the coefficients are finite: some solvers divide by differences of nodes, which may round to
// 0.
func (l link) finite() bool {
	sum := l.alpha - l.alpha
	for _, v := range l.beta {
		sum += v - v
	}
	return sum == 0
}

// clock has the nodes of the steps on the path of one subspace.
type clock struct {
	path *schedule.Path
	t    []float64 // times of the nodes, decreasing
	g, u []float64 // variance and noise level √g at the nodes, strictly decreasing

	eulerEnd bool    // the last step is an Euler step
	starts   []point // where the steps start, if not at their nodes
	maxLinks int     // the number of leading steps of a multistep method that need links
}

func newClock(path *schedule.Path, t []float64, eulerEnd bool) *clock {
	c := &clock{path: path, t: t, eulerEnd: eulerEnd, maxLinks: len(t)}
	for _, ti := range t {
		g, _ := path.Eval(ti)
		c.g = append(c.g, g)
		c.u = append(c.u, math.Sqrt(g))
	}
	return c
}

func (c *clock) steps() int { return len(c.t) - 1 }

// linkCount returns the number of links of a multistep method.
func (c *clock) linkCount() int { return min(c.steps(), c.maxLinks) }

// ends reports whether step i is the last one and an Euler step.
func (c *clock) ends(i int) bool { return c.eulerEnd && i == c.steps()-1 }

// order returns the order of step i of a multistep method of order p: at most the number of evaluations so far, and 1
// if the step is an Euler step.
func (c *clock) order(i, p int) int {
	if c.ends(i) {
		return 1
	}
	return min(p, i+1)
}

// link is a Stage seen by one subspace.
type link struct {
	t, g  float64 // where the network is evaluated
	alpha float64
	beta  []float64 // newest first
	step  int       // −1 for an inner stage
	noise float64   // standard deviation of the noise added before the evaluation
}

// nodeLink returns a link whose evaluation is at node i and which ends step i.
func (c *clock) nodeLink(i int, alpha float64, beta []float64) link {
	return link{t: c.t[i], g: c.g[i], alpha: alpha, beta: beta, step: i}
}

// point is where a step starts on one subspace's clock.
type point struct {
	t, g, u float64
	noise   float64 // standard deviation of the noise that led here from the node
}

// start returns where step i starts: at its node, or at a higher noise level with churn.
func (c *clock) start(i int) point {
	if c.starts != nil {
		return c.starts[i]
	}
	return point{t: c.t[i], g: c.g[i], u: c.u[i]}
}

// check returns an *Error if nodes coincide after rounding.
func (c *clock) check() error {
	for i := 1; i < len(c.u); i++ {
		if !(c.u[i] < c.u[i-1]) {
			return failf("grid", "must have distinct steps, got steps %d and %d both at noise level %v; take fewer steps or "+
				"move sigma_min", i-1, i, c.u[i])
		}
	}
	return nil
}
