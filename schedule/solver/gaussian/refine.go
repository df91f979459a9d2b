package gaussian

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

const (
	defaultIterations = 4
	// networkStep is the step of differences in the log-increments: a network answers
	// in float32, whose rounding over the step then weighs as much as the step's square.
	networkStep = 1e-2
	// refineTries bounds the steps tried from one point, each shorter than the last.
	refineTries = 4
)

// RefineSettings say how nodes are refined. The zero value of a field means its default.
type RefineSettings struct {
	// Iterations bounds the Gauss–Newton steps; 4 by default.
	Iterations int
	// Tie is that of Settings, as a share of the first squared error; 0.01 by default.
	// Negative means none.
	Tie float64
	// Progress is told of plans followed; may be nil.
	Progress func(done, total int)
}

// Refinement is what Refine has done to nodes.
type Refinement struct {
	Sigma         [][]float64 // [J][n+1]
	Schedule      *schedule.Schedule
	Before, After float64 // SolutionError on the latents of the search
}

// Refine moves nodes to where the sampler errs less on a network, by the method of
// Levenberg and Marquardt on
//
//	r(θ) = x_N(θ) − x*(θ),
//
// the sampler's samples less the converged ones from the same latents along the same
// path, the one that is log-linear between the nodes. Every path carries noise to the
// network's own law, each by a map of its own, so E|r|² bounds the sampler's W2² from
// that law whatever the nodes. A target that stayed where it was would be another
// path's solution, which no number of steps along this one attains.
//
// Within an iteration x* is held, and the Jacobian is that of x_N alone, by central
// differences. A step counts if |r|² falls with the x* of the new nodes, so that the
// error never rises. The tie of Settings is added to |r|². Ends stay.
//
// Errors are those of sample, *solver.Error, *schedule.Error, or of the context.
func Refine(ctx context.Context, from *Nodes, sample SampleFunc, set RefineSettings) (*Refinement, error) {
	r := &refiner{ctx: ctx, from: from, sample: sample, set: set}
	var theta []float64
	for _, sigma := range from.Sigma {
		theta = append(theta, parameters(sigma)...)
	}
	if r.set.Iterations == 0 {
		r.set.Iterations = defaultIterations
	}
	r.total = 2 + r.set.Iterations*(2*len(theta)+2)
	at, err := r.try(theta, nil, 0)
	if err != nil {
		return nil, err
	}
	out := &Refinement{Sigma: from.Sigma, Schedule: at.schedule, Before: at.error}
	switch {
	case set.Tie == 0:
		r.tie = defaultTie * square(at.rows)
	case set.Tie > 0:
		r.tie = set.Tie * square(at.rows)
	}
	at.rows = r.residual(at, at.target)
	mu, scale := 1e-3, make([]float64, len(theta))
	for i := 0; i < r.set.Iterations && len(theta) > 0; i++ {
		next, err := r.step(at, &mu, scale)
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		at = next
	}
	r.report(r.total)
	out.Sigma, out.Schedule, out.After = at.sigma, at.schedule, at.error
	return out, nil
}

// refiner is one run of Refine.
type refiner struct {
	ctx         context.Context
	from        *Nodes
	sample      SampleFunc
	set         RefineSettings
	tie         float64
	done, total int
}

// trial is a set of nodes and what the sampler makes of them.
type trial struct {
	theta     []float64
	sigma     [][]float64
	schedule  *schedule.Schedule
	x, target []float32
	rows      []float64 // x − target and the tie
	error     float64
}

// step returns a point of less error, or nil where none is found.
func (r *refiner) step(at *trial, mu *float64, scale []float64) (*trial, error) {
	jac := mat.NewDense(len(at.rows), len(at.theta), nil)
	for i := range at.theta {
		var ends [2][]float64
		for k, h := range []float64{networkStep, -networkStep} {
			theta := slices.Clone(at.theta)
			theta[i] += h
			moved, err := r.at(theta)
			if err != nil {
				return nil, err
			}
			ends[k] = r.residual(moved, at.target)
		}
		for k := range at.rows {
			jac.Set(k, i, (ends[0][k]-ends[1][k])/(2*networkStep))
		}
	}
	for range refineTries {
		theta, promised := dampedStep(jac, at.rows, at.theta, scale, *mu)
		if promised <= 0 {
			return nil, nil
		}
		next, err := r.try(theta, at.target, square(at.rows))
		if err != nil {
			return nil, err
		}
		if next != nil {
			*mu /= 3
			return next, nil
		}
		*mu = max(10**mu, 1e-2)
	}
	return nil, nil
}

// try returns the point θ with its own target, or nil if its squares do not add up to
// less than most, first with the old target, if there is one, and then with its own.
func (r *refiner) try(theta []float64, old []float32, most float64) (*trial, error) {
	p, err := r.at(theta)
	if err != nil {
		return nil, err
	}
	if old != nil && !(square(r.residual(p, old)) < most) {
		return nil, nil
	}
	if p.target, err = converged(r.ctx, p.schedule, r.from.Sampler.Steps, r.sample); err != nil {
		return nil, err
	}
	r.report(r.done + 1)
	p.rows = r.residual(p, p.target)
	if old != nil && !(square(p.rows) < most) {
		return nil, nil
	}
	p.error = distance(p.x, p.target)
	return p, nil
}

// at follows the sampler at the nodes of θ.
func (r *refiner) at(theta []float64) (*trial, error) {
	p := &trial{theta: theta}
	free := r.from.Sampler.Steps - 1
	for j, sigma := range r.from.Sigma {
		p.sigma = append(p.sigma, levels(theta[j*free:(j+1)*free], sigma[0], sigma[free+1]))
	}
	path := r.from.Schedule.At(0, 0)
	var err error
	if p.schedule, err = scheduleThrough(p.sigma, path.GT(), path.G0(), r.from.Schedule.Family()); err != nil {
		return nil, err
	}
	plan, err := solver.New(r.from.Sampler, p.schedule, 0)
	if err != nil {
		return nil, err
	}
	p.x, err = r.sample(r.ctx, plan)
	r.report(r.done + 1)
	return p, err
}

// residual returns x − target and the tie's rows.
func (r *refiner) residual(p *trial, target []float32) []float64 {
	out := make([]float64, len(p.x), len(p.x)+len(p.theta))
	for i, v := range p.x {
		out[i] = float64(v) - float64(target[i])
	}
	if r.tie == 0 || len(p.sigma) == 1 {
		return out
	}
	out = out[:cap(out)]
	tied(p.sigma, r.tie, out[len(p.x):])
	return out
}

func (r *refiner) report(done int) {
	r.done = min(done, r.total)
	if r.set.Progress != nil {
		r.set.Progress(r.done, r.total)
	}
}
