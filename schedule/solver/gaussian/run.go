package gaussian

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Run executes subspace j of a plan on a direction of variance λ: the unit normal ξ
// becomes a ξ + b m for data of mean m. It is exact but for rounding. Noise that the plan adds is left out.
func Run(p *solver.Plan, j int, variance float64) (a, b float64) {
	r := newRunner(p, j)
	return r.run(variance, r.init)
}

// runner is a plan seen by one subspace, with room for its history.
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

// gain returns ∂E/∂x: E = gain·x + shift·m is D or the flow.
func (r *runner) gain(variance, g float64) (gain, shift float64) {
	if r.data { // D = (λ x + g m)/(λ + g)
		return variance / (variance + g), g / (variance + g)
	}
	w := math.Sqrt(g) / (variance + g) // flow = −√g (x − m)/(λ + g)
	return -w, w
}

// outcome returns the standard deviation of what the plan makes of a direction, churn left
// out, and how far its mean is off.
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
		a, b = s.Alpha[r.j]*a, s.Alpha[r.j]*b
		for k, beta := range s.Beta[r.j] {
			a += beta * r.ea[i-k]
			b += beta * r.eb[i-k]
		}
	}
	return a, b
}

// noise returns the variance that errors of the network add to the output, if those
// of its evaluations are independent and as large as what it cannot know: the
// posterior's variance of x_0,
//
//	Var D = λ g/(λ + g),  Var flow = λ/(λ + g).
//
// It sums the squared derivatives of the output by the evaluations, found backwards. churn is the variance of the noise
// that the plan itself adds, if it churns.
func (r *runner) noise(variance float64) (sum, churn float64) {
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
		own := variance / (variance + g)
		if r.data {
			own *= g
		}
		sum += r.q[i] * r.q[i] * own
		if s.Noise != nil {
			churn += p * p * s.Noise[r.j] * s.Noise[r.j]
		}
	}
	return sum, churn
}
