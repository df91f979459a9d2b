package gaussian

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

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

// back returns how many evaluations back the part k of the history is, and whether it is the
// state there.
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
