package schedules

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

const (
	// levelHalvings is how many times the highest noise level is halved for lower ones that sampling may start from.
	levelHalvings = 4
	// candidatesPerLevel bounds the candidates of each level: those closest to the Gaussian are measured on the network.
	candidatesPerLevel = 3
	// maxFits bounds the candidates that coefficients are fitted around.
	maxFits = 2
	// fitTrajectories is the number of trajectories of a fit if memory allows, minFitTrajectories the least that is worth
	// it.
	fitTrajectories    = 128
	minFitTrajectories = 32
)

// candidate is a sampler that a search may choose.
type candidate struct {
	api.FewTry
	schedule *schedule.Schedule
	settings solver.Settings
	first    uint64            // the first of its samples
	samples  []*frechet.Sample // drawn so far, by reference
}

// fromNoise reports whether the sampler uses nothing of the data.
func (c *candidate) fromNoise() bool {
	return c.Start == api.StartStandard && c.settings.Statistics == nil
}

// score is the geometric mean of the distances, which weighs both alike whatever their scales.
func (c *candidate) score() float64 {
	if s := c.Frequencies * c.Edges; !math.IsNaN(s) {
		return math.Sqrt(s)
	}
	return math.Inf(1)
}

// noiseCandidates returns samplers that use nothing of the data: from noise, at the highest level and at a quarter of
// it.
func (f *fewStepSearch) noiseCandidates(top float64) (out []*candidate, err error) {
	for _, name := range f.isotropicSolvers() {
		for _, sigma := range []float64{top, top / 4} {
			c, err := f.onPolynomial(name, sigma)
			if err != nil {
				return nil, err
			}
			c.Start = api.StartStandard
			out = append(out, c)
		}
	}
	return out, nil
}

// matchedCandidates returns the samplers from the data's law that come closest to the Gaussian, for each noise level to
// start from: on EDM's rule, and on the levels that suit the solver.
func (f *fewStepSearch) matchedCandidates(ctx context.Context, top float64) (out []*candidate, err error) {
	none := basis.None(f.data.Height(), f.data.Width())
	for halving := range levelHalvings + 1 {
		sigma := top / float64(int(1)<<halving)
		var level []*candidate
		for _, name := range f.isotropicSolvers() {
			edm, err := f.onPolynomial(name, sigma)
			if err != nil {
				return nil, err
			}
			plan, err := solver.New(edm.settings, edm.schedule, 0)
			if err != nil {
				return nil, err
			}
			report, err := f.law.Bench(none, plan)
			if err != nil {
				return nil, err
			}
			edm.W2 = report.W2
			nodes, err := gaussian.Optimize(ctx, f.law, none, gaussian.Settings{
				Sampler: solver.Settings{Solver: name, NFE: f.req.NFE}, T: sigma * sigma, G0: f.model.G0(0),
				Family: schedule.Family{Basis: basis.KindNone},
			})
			if err != nil {
				return nil, err
			}
			optimal := &candidate{schedule: nodes.Schedule, settings: nodes.Sampler}
			optimal.FewTry = api.FewTry{
				Solver: name, NFE: nodes.Sampler.NFE, SigmaMax: sigma, Levels: "gaussian", W2: nodes.Report.W2,
			}
			level = append(level, edm, optimal)
		}
		slices.SortStableFunc(level, func(a, b *candidate) int { return cmp.Compare(a.W2, b.W2) })
		for _, c := range level[:min(candidatesPerLevel, len(level))] {
			c.Start = api.StartMatched
			out = append(out, c)
		}
	}
	return out, nil
}

// localCandidates returns samplers of the solver local on EDM's rule, from noise and from the data's law at lower noise
// levels.
func (f *fewStepSearch) localCandidates(top float64) (out []*candidate, err error) {
	for halving := range levelHalvings + 1 {
		if f.statistics == nil || halving == 1 {
			continue
		}
		c, err := f.onPolynomial(solver.LocalName, top/float64(int(1)<<halving))
		if err != nil {
			return nil, err
		}
		if c.Start = api.StartMatched; halving == 0 {
			c.Start = api.StartStandard
		}
		out = append(out, c)
	}
	return out, nil
}

// fitStarts returns the candidates of local that coefficients are fitted around, from the lowest noise level but one
// upwards: fitted samplers are best there.
func (f *fewStepSearch) fitStarts(local []*candidate) []*candidate {
	if !f.asks(solver.FittedName) || f.trajectories() < minFitTrajectories || len(local) == 0 {
		return nil
	}
	around := slices.Clone(local[:len(local)-1])
	slices.Reverse(around)
	return around[:min(maxFits, len(around))]
}

// trajectories is how many a fit can have in memory.
func (f *fewStepSearch) trajectories() int {
	return min(fitTrajectories, maxFitNumbers/(3*9*f.network.Model.Pixels()*(f.req.NFE+1)))
}

// fittedCandidate returns the sampler whose coefficients are fitted around those of a candidate of local.
func (f *fewStepSearch) fittedCandidate(ctx context.Context, around *candidate) (*candidate, error) {
	n := f.trajectories()
	c := &candidate{FewTry: around.FewTry, schedule: around.schedule, settings: around.settings}
	fit := &fitter{
		ctx: ctx, run: f.ensemble(c, 3*uint64(f.req.Samples), 2*n), samples: n, report: f.progress.at,
		schedule: catalog.Schedule{Parts: catalog.Parts{Schedule: c.schedule, Statistics: f.statistics}},
	}
	fit.h, fit.w, fit.c = f.model.ImageSize()
	coefficients, _, err := fit.all(fit.schedule, c.settings)
	if err != nil {
		return nil, err
	}
	c.FewTry = api.FewTry{Solver: solver.FittedName, NFE: c.NFE, SigmaMax: c.SigmaMax, Start: c.Start, Levels: c.Levels}
	c.settings = solver.Settings{
		Solver: solver.FittedName, Steps: c.settings.Steps, Statistics: f.statistics, Fitted: coefficients,
	}
	c.settings, err = c.settings.Resolve()
	return c, err
}

// onPolynomial returns a sampler on the levels of the grid polynomial from a noise level, as a schedule with its knots
// there: the levels are its uniform steps.
func (f *fewStepSearch) onPolynomial(name string, sigma float64) (*candidate, error) {
	set := solver.Settings{Solver: name, NFE: f.req.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial}}
	if byCoordinate(name) {
		set.Statistics = f.statistics
	}
	edm, err := catalog.EDMFrom(sigma*sigma, f.model.G0(0))
	if err != nil {
		return nil, err
	}
	if set, err = set.Resolve(); err != nil {
		return nil, err
	}
	plan, err := solver.New(set, edm, 0)
	if err != nil {
		return nil, err
	}
	n := set.Steps
	tau, g := make([]float64, n+1), make([]float64, n+1)
	for i, t := range plan.T {
		tau[n-i] = edm.T() * float64(n-i) / float64(n)
		g[n-i], _ = edm.At(0, 0).Eval(t)
	}
	tau[0], tau[n] = 0, edm.T()
	path, err := schedule.NewPath(tau, g)
	if err != nil {
		return nil, err
	}
	uniform := solver.Settings{Solver: name, Order: set.Order, Steps: n, Statistics: set.Statistics}
	if uniform, err = uniform.Resolve(); err != nil {
		return nil, err
	}
	return &candidate{
		FewTry:   api.FewTry{Solver: name, NFE: uniform.NFE, SigmaMax: sigma, Levels: solver.GridPolynomial},
		schedule: schedule.Isotropic(path), settings: uniform,
	}, nil
}

// ensemble returns n latents of a candidate, with labels as in the data set.
func (f *fewStepSearch) ensemble(c *candidate, offset uint64, n int) *batch.Ensemble {
	e := f.maker.Batcher.Ensemble(f.network, f.model.Shape.Labels, searchSeed(f.req.Seed)+offset, n)
	if f.model.Shape.Labels > 0 && f.data.Classes() > 0 {
		order := latent.Perm(f.req.Seed, streamLabels, f.data.Len())
		for i := range e.Rows {
			e.Rows[i].Label = f.data.Label(order[(int(offset)+i)%len(order)])
		}
	}
	e.Guide = f.guide
	if c.Start == api.StartMatched {
		e.Start = batch.StartOf(f.start, f.network.Model.Basis())
	}
	return e
}

// draw draws further samples of a candidate, until there are n, and measures its distances to the data set by all of
// them.
func (f *fewStepSearch) draw(ctx context.Context, c *candidate, n int) error {
	if n -= c.Samples; n <= 0 {
		return nil
	}
	e := f.ensemble(c, c.first+uint64(c.Samples), n)
	count := func(_ int, _ []float32, rows int, _ *kernels.Trajectory) error {
		f.progress.add(rows)
		return nil
	}
	x, err := e.Along(ctx, solver.Plans(c.settings, c.schedule), count)
	if err != nil {
		return err
	}
	if c.samples == nil {
		c.samples = []*frechet.Sample{f.references[0].NewSample(), f.references[1].NewSample()}
	}
	wide := make([]float64, e.Pixels())
	for im := range slices.Chunk(x, e.Pixels()) {
		for i, v := range im {
			wide[i] = float64(v)
		}
		for _, s := range c.samples {
			s.Add(wide)
		}
	}
	c.Samples += n
	c.Frequencies, c.Edges = f.references[0].Distance(c.samples[0]), f.references[1].Distance(c.samples[1])
	return nil
}
