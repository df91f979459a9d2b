package search

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

const (
	// levelHalvings is the number of times that the highest noise level is halved for lower initial levels, and
	// matchedHalvings that with a start from the data's law.
	levelHalvings, matchedHalvings = 4, 6
	// leastNoise is the least level at which a start from noise alone is tried, except a quarter of the highest level.
	// Little is left there of data of standard deviation 0.5.
	leastNoise = 8
	// maxFits bounds the number of fitted candidates.
	maxFits = 2
	// fitTrajectories is the number of trajectories of a fit if memory allows, and minFitTrajectories the least that is
	// useful. With bands, 128 were no better.
	fitTrajectories    = 32
	minFitTrajectories = 16
)

// Candidate is a sampler that a search may choose. Distances are squared Fréchet distances to the data, less those of
// as many images of it, divided by the variance of their features.
type Candidate struct {
	Schedule *schedule.Schedule
	Settings solver.Settings // resolved
	SigmaMax float64
	Matched  bool   // starts from the law of the data; else from noise alone
	Levels   string // polynomial, polynomial 3: EDM's rule to σ = 0.002; gaussian: chosen for the solver
	// Samples is the number that the distances are of: fewer than all if the candidate was dropped early.
	Samples int
	Distances
	HeldOut  Distances // of the best and its rival, on samples that nothing was chosen by
	ODEError float64   // root mean square difference to the converged samples from the same start, of the best

	drawn       *sampler.Moments // so far, of one part
	fit         *fitter          // that made its coefficients; nil for none
	learnedFrom *fitter          // that they were learned from; nil for none
	squares     []float64        // of the errors so far, in a search without images
}

// Distances are those of samples to the images by the features of each reference, or the mean squared error of a search
// without images.
type Distances []float64

// fromNoise reports whether the sampler uses nothing of the data.
func (c *Candidate) fromNoise() bool {
	return !c.Matched && c.Settings.Statistics == nil
}

// score returns [frechet.Score].
func (d Distances) score() float64 { return frechet.Score(d) }

// halvedLevel returns the highest noise level, halved a number of times.
func (f *fewStepSearch) halvedLevel(times int) float64 {
	return math.Sqrt(f.T) / float64(int(1)<<times)
}

// tooLow reports whether a halved level leaves no room above the lowest level of samplers.
func (f *fewStepSearch) tooLow(halving int) bool {
	return halving > 0 && f.halvedLevel(halving) <= 2*lowestOf(f.G0)
}

// rules are the exponents ρ of EDM's rule by the names of the levels.
var rules = []struct {
	levels string
	rho    float64
}{{solver.GridPolynomial, schedule.EDMRho}, {"polynomial 3", 3}}

// noiseCandidates returns samplers that use nothing of the data: from noise at the highest level, at a quarter of it,
// and at its halves down to leastNoise.
func (f *fewStepSearch) noiseCandidates() (out []*Candidate, err error) {
	for halving := range levelHalvings {
		sigma := f.halvedLevel(halving)
		if halving != 0 && halving != 2 && sigma < leastNoise || f.tooLow(halving) {
			continue
		}
		level, err := f.onRules(sigma)
		if err != nil {
			return nil, err
		}
		out = append(out, level...)
	}
	return out, nil
}

// matchedCandidates returns samplers from the data's law: for each initial noise level those on EDM's rule, and the one
// that is closest to the Gaussian of those on the levels that suit the solver there.
func (f *fewStepSearch) matchedCandidates(ctx context.Context) (out []*Candidate, err error) {
	for halving := range matchedHalvings + 1 {
		if f.tooLow(halving) {
			break
		}
		sigma := f.halvedLevel(halving)
		level, err := f.onRules(sigma)
		if err != nil {
			return nil, err
		}
		if f.Levels == nil {
			closest, err := f.onGaussian(ctx, sigma)
			if err != nil {
				return nil, err
			}
			level = append(level, closest)
		}
		for _, c := range level {
			c.Matched = true
			out = append(out, c)
		}
	}
	return out, nil
}

// onRules returns each isotropic solver on EDM's rule from a noise level, with each exponent.
func (f *fewStepSearch) onRules(sigma float64) (out []*Candidate, err error) {
	for _, name := range f.isotropicSolvers() {
		for _, rule := range rules {
			c, err := f.onPolynomial(name, sigma, rule.rho)
			if err != nil {
				return nil, err
			}
			if c != nil {
				c.Levels = rule.levels
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// onGaussian returns the isotropic solver that is closest to the data's Gaussian from a noise level, on the levels that
// suit it there.
func (f *fewStepSearch) onGaussian(ctx context.Context, sigma float64) (*Candidate, error) {
	var closest *gaussian.Nodes
	for _, name := range f.isotropicSolvers() {
		nodes, err := gaussian.Optimize(ctx, f.law, basis.None(f.h, f.w), gaussian.Settings{
			Sampler: solver.Settings{Solver: name, NFE: f.NFE}, T: sigma * sigma, G0: f.G0,
			Family: schedule.Family{Basis: basis.KindNone},
		})
		if err != nil {
			return nil, err
		}
		if closest == nil || nodes.Report.W2 < closest.Report.W2 {
			closest = nodes
		}
	}
	return &Candidate{Schedule: closest.Schedule, Settings: closest.Sampler, SigmaMax: sigma, Levels: "gaussian"}, nil
}

// localCandidates returns samplers of the solver local on EDM's rule, from noise, and from the data's law at lower
// noise levels.
func (f *fewStepSearch) localCandidates() (out []*Candidate, err error) {
	for halving := range levelHalvings + 1 {
		if f.statistics == nil || halving == 1 || f.tooLow(halving) {
			continue
		}
		c, err := f.onPolynomial(solver.LocalName, f.halvedLevel(halving), schedule.EDMRho)
		if err != nil {
			return nil, err
		}
		c.Matched = halving > 0
		out = append(out, c)
	}
	return out, nil
}

// fits returns the number of fitted candidates, from the data's law at the highest level halved once, twice, …
func (f *fewStepSearch) fits() (n int) {
	if !f.requests(solver.FittedName) || f.fitSamples() < minFitTrajectories {
		return 0
	}
	for n < maxFits && !f.tooLow(n+1) {
		n++
	}
	return n
}

// fitSamples returns the number of trajectories of a fit that memory allows.
func (f *fewStepSearch) fitSamples() int {
	return min(fitTrajectories, MaxFitNumbers/(2*f.h*f.w*f.c*f.NFE))
}

// fittedCandidate returns a sampler from the data's law at a halved level, with noise levels that suit the converged
// trajectories and coefficients fitted to them. Its last step is scaled to the squares of converged samples in every
// part: samples of least squared error are too smooth.
func (f *fewStepSearch) fittedCandidate(ctx context.Context, halving int) (*Candidate, error) {
	c := &Candidate{SigmaMax: f.halvedLevel(halving), Matched: true, Levels: "trajectories"}
	var err error
	if c.Schedule, err = pathToZero(c.SigmaMax*c.SigmaMax, f.G0); err != nil {
		return nil, err
	}
	n := f.fitSamples()
	r, err := newReference(ctx, f.network, c.Schedule, f.G0, f.Levels, f.trajectoriesOf(c, nil, 3*f.Samples, 2*n))
	if err != nil {
		return nil, err
	}
	nodes := r.nodes(f.NFE)
	if nodes == nil {
		return nil, ErrNotFinite
	}
	if c.fit, err = r.fit(ctx, n, nodes, solver.Settings{Statistics: f.statistics}, false); err != nil {
		return nil, err
	}
	c.fit.scaled = true
	if err := c.fit.finish(c.fit.fitted); err != nil {
		return nil, err
	}
	c.Settings, err = c.fit.sampler(c.fit.fitted).Resolve()
	return c, err
}

// onPolynomial returns a sampler on the levels of the grid polynomial from a noise level, with the exponent ρ, as the
// uniform steps of a schedule with its knots there, or nil if the network knows too few.
func (f *fewStepSearch) onPolynomial(name string, sigma, rho float64) (*Candidate, error) {
	set := solver.Settings{Solver: name, NFE: f.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial, Rho: rho}}
	if ByCoordinate(name) {
		set.Statistics = f.statistics
	}
	edm, err := schedule.EDM(sigma*sigma, f.G0)
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
	g := make([]float64, len(plan.T))
	for i, t := range plan.T {
		g[i], _ = edm.At(0, 0).Eval(t)
	}
	if g = f.known(g, 2); g == nil {
		return nil, nil
	}
	if f.Levels != nil {
		sigma = math.Sqrt(g[0])
	}
	path, err := schedule.PathThrough(g, edm.T())
	if err != nil {
		return nil, err
	}
	uniform := solver.Settings{Solver: name, Order: set.Order, Steps: set.Steps, Statistics: set.Statistics}
	if uniform, err = uniform.Resolve(); err != nil {
		return nil, err
	}
	return &Candidate{
		Schedule: schedule.Isotropic(path), Settings: uniform, SigmaMax: sigma, Levels: solver.GridPolynomial,
	}, nil
}

// trajectoriesOf returns trajectories with the initial states of a candidate.
func (f *fewStepSearch) trajectoriesOf(c *Candidate, p *solver.Plan, first, n int) sampler.Trajectories {
	t := f.trajectories(p, first, n)
	if c.Matched {
		t.Start = f.images.Start
	}
	return t
}

// draw samples a candidate until there are n samples, and sets its distances to the data.
func (f *fewStepSearch) draw(ctx context.Context, c *Candidate, n int) error {
	if n -= c.Samples; n <= 0 {
		return nil
	}
	plan, err := solver.New(c.Settings, c.Schedule, 0)
	if err != nil {
		return err
	}
	if c.drawn == nil {
		c.drawn = &sampler.Moments{Parts: frechet.PartsLike(f.images.References, 1)}
	}
	if err := f.network.Follow(ctx, f.trajectoriesOf(c, plan, c.Samples, n), c.drawn); err != nil {
		return err
	}
	c.Samples += n
	c.Distances = frechet.Distances(f.images.References, c.drawn.Parts[0])
	return nil
}
