package search

import (
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// substeps is the number of steps of the converged trajectories for each step of the sampler.
const substeps = 8

// ridges are the ridge weights to try, largest first. The ridge pulls coefficients towards those of local.
var ridges = []float64{10, 1, 0.1, 1e-2, 1e-3}

// maxFitNumbers bounds the numbers that a fit keeps: the states of converged trajectories at the nodes.
const maxFitNumbers = 1 << 28

// fitter fits coefficients to its first samples trajectories. As many further ones choose the ridge.
type fitter struct {
	ctx          context.Context
	network      sampler.Ensemble
	trajectories sampler.Trajectories // without a plan
	schedule     *schedule.Schedule
	local        solver.Local // that the fit begins with; its parts have coefficients of their own
	samples      int
	deviation    float64 // standard deviation of the first states; 0: their noise level
	// states are those of converged trajectories, and at has the index of the nodes after the first in them.
	states *sampler.States
	at     []int
	base   solver.Coefficients // of local
	fitted solver.Coefficients
	scaled bool // its last step is scaled
	// guidance is that of each step; nil: all 1.
	guidance []float64
}

// fitAll fits one step after the other between noise levels. Each step starts from the states that the steps before it
// produce; the ridge pulls it towards local.
func (f *fitter) fitAll(sigma []float64) error {
	f.base = f.local.On(sigma)
	f.fitted = solver.Coefficients{
		Sigma: sigma, Deviation: f.deviation, Guidance: f.guidance, Coordinates: f.base.Coordinates,
	}
	for i, alpha := range f.base.Alpha {
		a, b, err := f.fitStep(f.fitted, i, alpha, f.base.Beta[i], func(p *solver.Plan, sums *sampler.Gram) error {
			return f.follow(p, sums)
		})
		if err != nil {
			return err
		}
		f.fitted.Alpha, f.fitted.Beta = append(f.fitted.Alpha, a), append(f.fitted.Beta, b)
	}
	return nil
}

// fitStep fits the step after those of before, which ends step `step` of the trajectories, near given weights. follow
// follows a plan that ends with it.
func (f *fitter) fitStep(before solver.Coefficients, step int, alpha []float64, beta [][]float64,
	follow func(*solver.Plan, *sampler.Gram) error,
) ([]float64, [][]float64, error) {
	n := len(before.Alpha) + 1
	part := before
	part.Sigma = before.Sigma[:n+1]
	part.Alpha, part.Beta = append(slices.Clip(before.Alpha), alpha), append(slices.Clip(before.Beta), beta)
	plan, err := part.Plan(f.schedule)
	if err != nil {
		return nil, nil, err
	}
	sums := f.gram(n, beta, step)
	if err := follow(plan, sums); err != nil {
		return nil, nil, err
	}
	a, b := fitWeights(alpha, beta, sums)
	if a == nil {
		return nil, nil, ErrNotFinite
	}
	return a, b, nil
}

// candidate returns the sampler that was fitted.
func (f *fitter) candidate(levels string) (*Candidate, error) {
	c, err := given(fittedName, f.fitted, f.schedule, levels)
	if err != nil {
		return nil, err
	}
	c.fit, c.early = f, func() ([][]solver.Stage, error) { return stagesOf(f.local.ShortTails(f.fitted)), nil }
	c.tails = func() ([][]solver.Stage, error) {
		tails, err := f.tails()
		return stagesOf(tails), err
	}
	return c, nil
}

// tails fits the combinations of samplers that begin at a later step, while their history is short, from the converged
// states there.
func (f *fitter) tails() (out []solver.Weights, err error) {
	for k, tail := range f.local.Tails(f.base) {
		short := solver.Coefficients{Sigma: f.base.Sigma[k+1:], Coordinates: f.base.Coordinates}
		if f.guidance != nil {
			short.Guidance = f.guidance[k+1:]
		}
		for j, alpha := range tail.Alpha {
			a, b, err := f.fitStep(short, k+1+j, alpha, tail.Beta[j], func(p *solver.Plan, sums *sampler.Gram) error {
				return f.followFrom(p, f.at[k], sums)
			})
			if err != nil {
				return nil, err
			}
			short.Alpha, short.Beta = append(short.Alpha, a), append(short.Beta, b)
		}
		out = append(out, short.Weights)
	}
	return out, nil
}

// gram returns empty sums for the last of a number of stages, which ends step `step` with weights of the lengths of
// beta.
func (f *fitter) gram(stages int, beta [][]float64, step int) *sampler.Gram {
	terms := max(2, len(beta[0])) // of the state, and of each evaluation and its state; the newest's is the running one
	return sampler.NewGram(f.local.Coordinates, stages, terms, f.states, f.at[step], f.samples)
}

// converge sets the states of converged trajectories at the nodes after the first.
func (f *fitter) converge(sigma []float64) error {
	fine := []float64{sigma[0]}
	for i, s := range sigma[1:] {
		f.at = append(f.at, i)
		for k := 1; k <= substeps; k++ {
			fine = append(fine, sigma[i]*math.Pow(s/sigma[i], float64(k)/substeps))
		}
	}
	plan, err := solver.New(solver.Settings{
		Solver: "ipndm_v", Warmup: solver.WarmupHeun, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: fine},
	}, f.schedule, 0)
	if err != nil {
		return err
	}
	f.states = &sampler.States{Every: substeps}
	return f.follow(plan, f.states)
}

// followFrom follows a plan from a state of the converged trajectories.
func (f *fitter) followFrom(plan *solver.Plan, at int, reducer sampler.Reducer) error {
	from := *plan
	from.Init = []float64{1}
	t := f.trajectories
	t.Plan, t.Start, t.From, t.At, t.Progress = &from, nil, f.states, at, nil
	return f.network.Follow(f.ctx, t, reducer)
}

// follow follows a plan.
func (f *fitter) follow(plan *solver.Plan, reducer sampler.Reducer) error {
	t := f.trajectories
	t.Plan = plan
	return f.network.Follow(f.ctx, t, reducer)
}

// fitWeights fits one stage's weights, by part unless the sums have a single part, with the ridge that has the least
// held-out error. It returns nil if no error is finite.
func fitWeights(near []float64, nearBeta [][]float64, gram *sampler.Gram) (alpha []float64, beta [][]float64) {
	least, fitted, aside := math.Inf(1), gram.Sums[0], gram.Sums[1]
	for _, ridge := range append([]float64{math.Inf(1)}, ridges...) {
		a, b := make([]float64, len(near)), make([][]float64, len(near))
		var sum float64
		for part := range a {
			w := termsOf(near[part], nearBeta[part])
			if !math.IsInf(ridge, 1) {
				w = fitted[part].Fit(w, ridge)
			}
			a[part], b[part] = w[0], make([]float64, len(nearBeta[part]))
			b[part][0] = w[1]
			copy(b[part][min(2, len(b[part])):], w[2:])
			sum += aside[part].Error(w)
		}
		if sum < least {
			least, alpha, beta = sum, a, b
		}
	}
	return alpha, beta
}

// termsOf returns weights in the order of the sums: of x_0, D_0, D_1, x_1, …
func termsOf(alpha float64, beta []float64) []float64 {
	return append([]float64{alpha, beta[0]}, beta[min(2, len(beta)):]...)
}
