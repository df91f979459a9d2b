package search

import (
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// substeps is the number of steps of the converged trajectories for each step of the sampler.
const substeps = 8

// ridges are the ridge weights to try, largest first. The ridge pulls coefficients towards those of local.
var ridges = []float64{10, 1, 0.1, 1e-2, 1e-3}

// MaxFitNumbers bounds the numbers that a fit keeps: the states of converged trajectories at the nodes.
const MaxFitNumbers = 1 << 28

// FitSettings are the settings of Fit.
type FitSettings struct {
	Solver  solver.Settings // of the solver local, without statistics
	Samples int             // trajectories to fit to; as many choose the ridge, and as many judge
	Seed    uint64
	// Isotropic fits one set of coefficients for all parts.
	Isotropic bool
	Start     *start.Start // that sampling starts from; nil: from noise alone
	// Label returns the label of trajectory i, which has a seed; −1 for none.
	Label func(i int, seed uint64) int32
	// Report is called with the number of evaluations done and that of all.
	Report func(done, total int)
}

// FitErrors are root mean square differences to the converged samples, on held-out latents.
type FitErrors struct{ Local, Fitted float64 }

// Fit fits coefficients to a network's own trajectories along a schedule of one subspace that all classes share, in the
// parts of its statistics. It returns ErrNotFinite if the samples are not finite.
func Fit(
	ctx context.Context, network sampler.Ensemble, s *schedule.Schedule, statistics *local.Statistics, set FitSettings,
) (*solver.Fitted, *FitErrors, error) {
	f := &fitter{
		ctx: ctx, network: network, samples: set.Samples, schedule: s, statistics: statistics, isotropic: set.Isotropic,
		trajectories: sampler.Trajectories{Seed: firstSeed(set.Seed), Labels: make([]int32, 3*set.Samples), Start: set.Start},
		report:       set.Report,
	}
	for i := range f.trajectories.Labels {
		f.trajectories.Labels[i] = set.Label(i, f.trajectories.Seed+uint64(i))
	}
	if set.Solver.Statistics = statistics; f.isotropic {
		set.Solver.Statistics = statistics.WithoutGain()
	}
	fitted, errs, err := f.fitAll(set.Solver)
	if err == nil {
		fitted.Tails, err = f.tails()
	}
	return fitted, errs, err
}

// fitter fits coefficients to its first samples trajectories. As many further ones choose the ridge, and the rest, if
// there are any, are held out.
type fitter struct {
	ctx          context.Context
	network      sampler.Ensemble
	trajectories sampler.Trajectories // without a plan
	schedule     *schedule.Schedule
	statistics   *local.Statistics
	samples      int
	isotropic    bool // one set of coefficients for all parts
	// states are those of converged trajectories, and at has the index of the nodes after the first in them. If states is
	// nil, fitAll follows them.
	states *sampler.States
	at     []int
	set    solver.Settings // that all began at, and its plan
	base   *solver.Plan
	fitted *solver.Fitted // of a reference
	scaled bool           // its last step is scaled

	report      func(done, total int)
	done, total int
}

// fitAll fits one step after the other, each from the states to which the fitted steps before it lead, near local with
// some settings.
func (f *fitter) fitAll(set solver.Settings) (*solver.Fitted, *FitErrors, error) {
	base, err := solver.New(set, f.schedule, 0)
	if err != nil {
		return nil, nil, err
	}
	n, rows := len(base.Stages), len(f.trajectories.Labels)
	f.total = rows*substeps*n + 2*f.samples*n*(n+1)/2 + (rows-2*f.samples)*2*n
	sigma := make([]float64, n+1)
	for i, t := range base.T {
		sigma[i] = f.schedule.Sigma(0, t)
	}
	f.set, f.base = set, base
	if f.states == nil {
		if err := f.converge(sigma); err != nil {
			return nil, nil, err
		}
	}
	plan := *base
	plan.Stages = slices.Clone(base.Stages)
	for i, st := range base.Stages {
		part := plan
		part.Stages, part.NFE, part.T = plan.Stages[:i+1], i+1, base.T[:i+2]
		gram := f.gram(i+1, st, i)
		if err := f.follow(&part, 0, 2*f.samples, gram); err != nil {
			return nil, nil, err
		}
		if plan.Stages[i].Alpha, plan.Stages[i].Beta = fitStep(st, gram); plan.Stages[i].Alpha == nil {
			return nil, nil, ErrNotFinite
		}
	}
	report := &FitErrors{}
	if rows > 2*f.samples {
		if report.Local, err = f.heldOutError(base); err != nil {
			return nil, nil, err
		}
		if report.Fitted, err = f.heldOutError(&plan); err != nil {
			return nil, nil, err
		}
	}
	return &solver.Fitted{Sigma: sigma, Weights: weightsOf(plan.Stages)}, report, nil
}

func weightsOf(stages []solver.Stage) (out solver.Weights) {
	for _, st := range stages {
		out.Alpha, out.Beta = append(out.Alpha, st.Alpha), append(out.Beta, st.Beta)
	}
	return out
}

// completeTails fits the combinations of samplers that begin at a later step, while their history is short, from the
// converged states there. It does nothing for a candidate that is not fitted.
func (c *Candidate) completeTails() error {
	var tails []solver.Weights
	var err error
	switch {
	case c.learnedFrom != nil:
		tails, err = c.learnedFrom.tailsOn(c.Settings.Fitted.Sigma)
	case c.fit != nil:
		tails, err = c.fit.tails()
	default:
		return nil
	}
	c.Settings.Fitted.Tails = tails
	return err
}

// tails returns the tails of the fit that fitAll has made.
func (f *fitter) tails() (out []solver.Weights, err error) {
	tails, err := solver.Tails(f.set, f.schedule, 0)
	for k, stages := range tails {
		part := *f.base
		part.Init = []float64{1}
		for j, st := range stages {
			part.Stages, part.NFE, part.T = append(slices.Clone(stages[:j]), st), j+1, f.base.T[k+1:k+3+j]
			gram := f.gram(j+1, st, k+1+j)
			if err := f.followFrom(&part, f.at[k], gram); err != nil {
				return nil, err
			}
			if stages[j].Alpha, stages[j].Beta = fitStep(st, gram); stages[j].Alpha == nil {
				return nil, ErrNotFinite
			}
		}
		out = append(out, weightsOf(stages))
	}
	return out, err
}

// gram returns the sums of no rows for stage st, the last of a number of stages, which ends a step.
func (f *fitter) gram(stages int, st solver.Stage, step int) *sampler.Gram {
	parts := f.statistics
	if f.isotropic {
		parts = nil
	}
	terms := max(2, len(st.Beta[0])) // of the state, and of each evaluation and its state; the newest's is the running one
	return sampler.NewGram(parts, stages, terms, f.states, f.at[step], f.samples)
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
	return f.follow(plan, 0, len(f.trajectories.Labels), f.states)
}

// followFrom follows a plan from a state of the converged trajectories, for those that the fit uses.
func (f *fitter) followFrom(plan *solver.Plan, at int, reducer sampler.Reducer) error {
	t := f.trajectories
	t.Labels, t.Plan, t.Start = t.Labels[:2*f.samples], plan, nil
	t.From, t.At, t.Progress = f.states, at, nil
	return f.network.Follow(f.ctx, t, reducer)
}

// follow follows a plan for the trajectories first … end − 1.
func (f *fitter) follow(plan *solver.Plan, first, end int, reducer sampler.Reducer) error {
	t := f.trajectories
	t.Seed, t.Labels = t.Seed+uint64(first), t.Labels[first:end]
	t.Plan, t.Progress = plan, func(evaluations int) {
		f.done += evaluations
		f.report(min(f.done, f.total), f.total)
	}
	return f.network.Follow(f.ctx, t, reducer)
}

// fitStep fits one stage's weights, by part unless the sums have a single part, with the ridge that has the least
// held-out error. It returns nil if no error is finite.
func fitStep(st solver.Stage, gram *sampler.Gram) (alpha []float64, beta [][]float64) {
	least, fitted, aside := math.Inf(1), gram.Sums[0], gram.Sums[1]
	for _, ridge := range append([]float64{math.Inf(1)}, ridges...) {
		a, b := make([]float64, len(st.Alpha)), make([][]float64, len(st.Alpha))
		var sum float64
		for part := range a {
			if part >= len(fitted) {
				a[part], b[part] = a[0], b[0]
				continue
			}
			w := append([]float64{st.Alpha[part], st.Beta[part][0]}, st.Beta[part][min(2, len(st.Beta[part])):]...)
			if !math.IsInf(ridge, 1) {
				w = fitted[part].Fit(w, ridge)
			}
			a[part], b[part] = w[0], make([]float64, len(st.Beta[part]))
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

// heldOutError returns the root mean square difference of a plan's samples to the converged ones, on held-out
// trajectories.
func (f *fitter) heldOutError(plan *solver.Plan) (float64, error) {
	errs := &sampler.Errors{States: f.states, At: f.at[len(f.at)-1], First: 2 * f.samples}
	if err := f.follow(plan, errs.First, len(f.trajectories.Labels), errs); err != nil {
		return 0, err
	}
	var sum float64
	for _, v := range errs.Squares {
		sum += v
	}
	if !setting.Finite(sum) {
		return 0, ErrNotFinite
	}
	h, w, c := f.network.Shape()
	return math.Sqrt(sum / float64(len(errs.Squares)*h*w*c)), nil
}
