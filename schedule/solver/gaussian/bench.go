package gaussian

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Report is a sampler's squared 2-Wasserstein distance to the data's Gaussian. All its numbers are relative to the
// data's total variance.
type Report struct {
	Distance
	Bands []Band // [J]; their parts add up to the whole
}

// Distance is a squared 2-Wasserstein distance and what it is made of.
type Distance struct {
	W2 float64 // Spread + Shift
	// Spread is due to wrong variances: the solver's error.
	Spread float64
	// Shift is due to wrong means. From noise alone no solver is without it: sampling starts at mean zero as if the noise
	// had drowned the data's mean, and m²λ/σ_max² of it stays. From the data's own law there is none.
	Shift float64
	// Noise is what errors of a network would add to W2, if its evaluations erred independently, by the posterior's own
	// standard deviation. Errors of a hundredth of that add 1e-4·Noise. It is no part of W2 and tells plans that
	// extrapolate wildly.
	Noise float64
}

// Band is the part of a Report that belongs to one subspace.
type Band struct {
	Distance
	Dims     int         // directions
	Variance float64     // share of the total variance
	Output   []Direction // what the sampler makes of each direction, in the order of Spectrum.Bands
}

// Bench runs a plan of J subspaces on the Gaussian and returns its distance. A basis that Spectrum.Bands refuses, a
// plan for another J and data without variance are an *Error.
func (s *Spectrum) Bench(b *basis.Basis, p *solver.Plan) (*Report, error) {
	bands, err := s.Bands(b)
	if err != nil {
		return nil, err
	}
	if len(p.Init) != len(bands) {
		return nil, failf("schedule", "must have the %d subspaces of the basis, got %d", len(bands), len(p.Init))
	}
	if err := s.checkCoordinates(b, p); err != nil {
		return nil, err
	}
	total := s.Variance()
	if !(total > 0) {
		return nil, failf("dataset", "must hold images that differ, got all alike")
	}
	rep := &Report{}
	for j, band := range bands {
		out := Band{Dims: len(band), Output: make([]Direction, len(band))}
		r := newRunner(p, j)
		for i, d := range band {
			if p.Coordinates != nil {
				r.part = i
			}
			deviation, shift := r.outcome(d)
			noise, churn := r.noise(d.Variance)
			deviation = math.Hypot(deviation, math.Sqrt(churn)) // with independent noise
			spread := deviation - math.Sqrt(d.Variance)
			out.add(Distance{Spread: spread * spread / total, Shift: shift * shift / total, Noise: noise / total})
			out.Variance += d.Variance / total
			out.Output[i] = Direction{Mean: d.Mean + shift, Variance: deviation * deviation}
		}
		rep.add(out.Distance)
		rep.Bands = append(rep.Bands, out)
	}
	return rep, nil
}

// checkCoordinates refuses a plan whose own coordinates are not the law's.
func (s *Spectrum) checkCoordinates(b *basis.Basis, p *solver.Plan) error {
	c := p.Coordinates
	if c == nil {
		return nil
	}
	if c.H != s.H || c.W != s.W || c.C != s.C || b.J() != 1 {
		return failf("basis",
			"must be none, and the statistics those of images of %d×%d×%d as the data has, got %d×%d×%d in %d subspaces",
			s.H, s.W, s.C, c.H, c.W, c.C, b.J())
	}
	data, plan := s.axes(), (&Spectrum{H: s.H, W: s.W, C: s.C, Axes: c.Axes[c.Row]}).axes()
	for i, v := range data {
		if math.Abs(math.Abs(v)-math.Abs(plan[i])) > sameAxes {
			return failf("dataset", "must be the one that the schedule's statistics are of: its axes of the channels are others")
		}
	}
	return nil
}

// sameAxes is how far the components of axes may differ.
const sameAxes = 1e-6

// axes returns those of the channels at each frequency.
func (s *Spectrum) axes() []float64 {
	if s.Axes != nil {
		return s.Axes
	}
	axes := make([]float64, s.H*s.W*s.C*s.C)
	for f := range s.H * s.W {
		for k := range s.C {
			axes[(f*s.C+k)*s.C+k] = 1
		}
	}
	return axes
}

func (d *Distance) add(e Distance) {
	d.Spread += e.Spread
	d.Shift += e.Shift
	d.Noise += e.Noise
	d.W2 = d.Spread + d.Shift
}

// SampleFunc follows a plan through a network from latents of its own, the same every time, and returns all samples'
// values.
type SampleFunc func(ctx context.Context, p *solver.Plan) ([]float32, error)

// teacherSteps is the least number of Heun's steps that count as converged: they err a hundred times less than five of
// the best multistep solvers.
const teacherSteps = 64

// SolutionError returns a sampler's ODE error on a row of a schedule: the root mean square, over all samples' values,
// of their difference to the converged solution from the same latents along the same path. Grids of the schedule's own
// times are compared most exactly, as the steps of the teacher then divide them.
func SolutionError(ctx context.Context, s solver.Settings, sch *schedule.Schedule, sample SampleFunc) (float64, error) {
	s, err := s.Resolve()
	if err != nil {
		return 0, err
	}
	// The teacher's steps divide those of a uniform grid, so that no knot of a schedule through its nodes lies within one.
	teacher := solver.Settings{Solver: "heun", Steps: s.Steps * ((teacherSteps + s.Steps - 1) / s.Steps)}
	var x [2][]float32
	for i, set := range []solver.Settings{s, teacher} {
		p, err := solver.New(set, sch, 0)
		if err != nil {
			return 0, err
		}
		if x[i], err = sample(ctx, p); err != nil {
			return 0, err
		}
	}
	var sum float64
	for i, v := range x[0] {
		d := float64(v) - float64(x[1][i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(max(1, len(x[0])))), nil
}

// runner is a plan seen by one subspace, or one coordinate, with room for its history.
type runner struct {
	init   float64
	data   bool
	states bool // the history holds the state behind each evaluation
	stages []solver.Stage
	j      int       // subspace, of the noise
	part   int       // part of the plan, of the combinations
	ea, eb []float64 // evaluations as multiples of ξ and of m, the oldest first
	xa, xb []float64 // the states that they were made at
	q, qx  []float64 // derivatives of the output by the evaluations, and by those states
}

func newRunner(p *solver.Plan, j int) *runner {
	n := len(p.Stages)
	return &runner{
		init: p.Init[j], data: p.Data, states: p.States, stages: p.Stages, j: j, part: j,
		ea: make([]float64, n), eb: make([]float64, n), q: make([]float64, n),
		xa: make([]float64, n), xb: make([]float64, n), qx: make([]float64, n),
	}
}

// back returns how many evaluations back the part k of the history is, and whether it is the state there.
func (r *runner) back(k int) (evaluations int, state bool) {
	if r.states {
		return k / 2, k%2 == 1
	}
	return k, false
}

// gain returns ∂E/∂x: E = gain·x + shift·m is D or the flow.
func (r *runner) gain(variance, g float64) (gain, shift float64) {
	if r.data { // D = (λ x + g m)/(λ + g)
		return variance / (variance + g), g / (variance + g)
	}
	w := math.Sqrt(g) / (variance + g) // flow = −√g (x − m)/(λ + g)
	return -w, w
}

// outcome returns the standard deviation of what the plan makes of a direction, churn left out, and how far its mean is
// off.
func (r *runner) outcome(d Direction) (deviation, shift float64) {
	if d.Start == nil {
		a, b := r.run(d.Variance, r.init)
		return math.Abs(a), (b - 1) * d.Mean
	}
	a, b := r.run(d.Variance, 1)
	return math.Abs(a) * math.Sqrt(d.Start.Variance+r.init*r.init), a*d.Start.Mean + (b-1)*d.Mean
}

// run returns a and b of the output a ξ + b m from the state start·ξ.
func (r *runner) run(variance, start float64) (a, b float64) {
	a = start
	for i, s := range r.stages {
		gain, shift := r.gain(variance, s.G[r.j])
		r.ea[i], r.eb[i] = gain*a, gain*b+shift
		r.xa[i], r.xb[i] = a, b
		a, b = s.Alpha[r.part]*a, s.Alpha[r.part]*b
		for k, beta := range s.Beta[r.part] {
			ea, eb := r.ea, r.eb
			at, state := r.back(k)
			if state {
				ea, eb = r.xa, r.xb
			}
			a += beta * ea[i-at]
			b += beta * eb[i-at]
		}
	}
	return a, b
}

// noise returns the variance that errors of the network add to the output, if those of its evaluations are independent
// and as large as what it cannot know: the posterior's variance of x_0,
//
//	Var D = λ g/(λ + g),  Var flow = λ/(λ + g).
//
// It sums the squared derivatives of the output by the evaluations, found backwards. churn is the variance of the noise
// that the plan itself adds, if it churns.
func (r *runner) noise(variance float64) (sum, churn float64) {
	clear(r.q)
	clear(r.qx)
	p := 1.0 // derivative by the running x
	for i := len(r.stages) - 1; i >= 0; i-- {
		s := r.stages[i]
		for k, beta := range s.Beta[r.part] {
			if at, state := r.back(k); state {
				r.qx[i-at] += p * beta
			} else {
				r.q[i-at] += p * beta
			}
		}
		g := s.G[r.j]
		gain, _ := r.gain(variance, g)
		p = p*s.Alpha[r.part] + r.q[i]*gain + r.qx[i]
		posterior := variance / (variance + g)
		if r.data {
			posterior *= g
		}
		sum += r.q[i] * r.q[i] * posterior
		if s.Noise != nil {
			churn += p * p * s.Noise[r.j] * s.Noise[r.j]
		}
	}
	return sum, churn
}
