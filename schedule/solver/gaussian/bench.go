package gaussian

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Report is a sampler's squared 2-Wasserstein distance to the data's Gaussian. All its numbers are divided by the
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
	// Shift is due to wrong means. From noise alone every solver has it: sampling starts at mean zero, and m²λ/σ_max²
	// remains. From the data's own law it is 0.
	Shift float64
	// Noise is what W2 would grow by if the network's evaluations had independent errors with the posterior's standard
	// deviation. Errors of a hundredth of that add 1e-4·Noise. It is not part of W2, and is large for plans that
	// extrapolate wildly.
	Noise float64
}

// Band is the part of a Report that belongs to one subspace.
type Band struct {
	Distance
	Dims     int     // directions
	Variance float64 // share of the total variance
}

// Bench returns the distance of a plan, without churn, whose subspaces are those of a basis. It returns a *solver.Error
// for a basis that Bands refuses, a plan of another J, with coefficients by coordinate or states in its history, and
// data without variance.
func (s *Spectrum) Bench(b *basis.Basis, p *solver.Plan) (*Report, error) {
	bands, err := s.Bands(b)
	if err != nil {
		return nil, err
	}
	total := s.Variance()
	switch {
	case len(p.Init) != len(bands):
		return nil, failf("schedule", "must have the %d subspaces of the basis, got %d", len(bands), len(p.Init))
	case p.Coordinates != nil:
		return nil, failf("solver", "must be one with the same coefficients for all frequencies of a subspace")
	case p.States:
		return nil, failf("solver", "must be one without states in its history")
	case !(total > 0):
		return nil, failf("dataset", "must hold images that differ, got all alike")
	}
	rep := &Report{}
	for j, band := range bands {
		out := Band{Dims: len(band)}
		r := newRunner(p, j)
		for _, d := range band {
			deviation, shift := r.outcome(d)
			spread := deviation - math.Sqrt(d.Variance)
			out.add(Distance{Spread: spread * spread / total, Shift: shift * shift / total, Noise: r.noise(d.Variance) / total})
			out.Variance += d.Variance / total
		}
		rep.add(out.Distance)
		rep.Bands = append(rep.Bands, out)
	}
	return rep, nil
}

// BenchSampler is Bench of a sampler on the first row of a schedule.
func (s *Spectrum) BenchSampler(b *basis.Basis, set solver.Settings, sch *schedule.Schedule) (*Report, error) {
	plan, err := solver.New(set, sch, 0)
	if err != nil {
		return nil, err
	}
	return s.Bench(b, plan)
}

func (d *Distance) add(e Distance) {
	d.Spread += e.Spread
	d.Shift += e.Shift
	d.Noise += e.Noise
	d.W2 = d.Spread + d.Shift
}

// runner executes one subspace of a plan on Gaussian data.
type runner struct {
	init   float64
	data   bool
	stages []solver.Stage
	j      int
	ea, eb []float64 // evaluations as multiples of ξ and of m, the oldest first
	q      []float64 // derivatives of the output by the evaluations
}

func newRunner(p *solver.Plan, j int) *runner {
	n := len(p.Stages)
	return &runner{
		init: p.Init[j], data: p.Data, stages: p.Stages, j: j,
		ea: make([]float64, n), eb: make([]float64, n), q: make([]float64, n),
	}
}

// gain returns the coefficients of the evaluation E = gain·x + shift·m, which is D or the flow.
func (r *runner) gain(variance, g float64) (gain, shift float64) {
	if r.data { // D = (λ x + g m)/(λ + g)
		return variance / (variance + g), g / (variance + g)
	}
	w := math.Sqrt(g) / (variance + g) // flow = −√g (x − m)/(λ + g)
	return -w, w
}

// outcome returns the standard deviation of a direction of the samples, and the error of its mean.
func (r *runner) outcome(d Direction) (deviation, shift float64) {
	if d.Start == nil {
		a, b := r.run(d.Variance, r.init)
		return math.Abs(a), (b - 1) * d.Mean
	}
	a, b := r.run(d.Variance, 1)
	return math.Abs(a) * math.Sqrt(d.Start.Variance+r.init*r.init), a*d.Start.Mean + (b-1)*d.Mean
}

// run returns a and b of the output a ξ + b m for the initial state start·ξ.
func (r *runner) run(variance, start float64) (a, b float64) {
	a = start
	for i, s := range r.stages {
		gain, shift := r.gain(variance, s.G[r.j])
		r.ea[i], r.eb[i] = gain*a, gain*b+shift
		a, b = s.Alpha[r.j]*a, s.Alpha[r.j]*b
		for k, beta := range s.Beta[r.j] {
			a += beta * r.ea[i-k]
			b += beta * r.eb[i-k]
		}
	}
	return a, b
}

// noise returns the variance of the output due to independent errors of the evaluations, each of the posterior's
// variance:
//
//	Var D = λ g/(λ + g),  Var flow = λ/(λ + g).
//
// It sums the squared derivatives of the output with respect to the evaluations, computed backwards.
func (r *runner) noise(variance float64) (sum float64) {
	clear(r.q)
	p := 1.0 // derivative by the running x
	for i := len(r.stages) - 1; i >= 0; i-- {
		s := r.stages[i]
		for k, beta := range s.Beta[r.j] {
			r.q[i-k] += p * beta
		}
		g := s.G[r.j]
		gain, _ := r.gain(variance, g)
		p = p*s.Alpha[r.j] + r.q[i]*gain
		posterior := variance / (variance + g)
		if r.data {
			posterior *= g
		}
		sum += r.q[i] * r.q[i] * posterior
	}
	return sum
}
