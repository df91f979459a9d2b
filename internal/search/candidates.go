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

// The makers of plans that are no solvers by name: coefficients by the statistics of the denoiser, and fitted ones.
const (
	localName  = "local"
	fittedName = "fitted"
)

// Candidate is a sampler that a search may choose. Distances are squared Fréchet distances to the data, less those of
// as many images of it, divided by the variance of their features.
type Candidate struct {
	Plan   *solver.Plan
	Solver string // that made the plan: a name of the register, local or fitted
	// SigmaMax is the noise level at which the plan begins.
	SigmaMax float64
	Matched  bool   // starts from the law of the data; else from noise alone
	Levels   string // polynomial, polynomial 3: EDM's rule to σ = 0.002; gaussian: chosen for the solver
	// Samples is the number that the distances are of: fewer than all if the candidate was dropped early.
	Samples int
	Distances
	HeldOut  Distances // of the best and its rival, on samples that nothing was chosen by
	ODEError float64   // root mean square difference to the converged samples from the same start, of the best

	// tails returns the weights of samplers that begin at a later step. early returns those that need no evaluation.
	tails, early func() ([][]solver.Stage, error)
	end          float64          // noise level at which the plan ends
	drawn        *sampler.Moments // so far, of one part
	fit          *fitter          // that made its coefficients; nil for none
	squares      []float64        // of the errors so far, in a search without images
}

// Distances are those of samples to the images by the features of each reference, or the mean squared error of a search
// without images.
type Distances []float64

// fromNoise reports whether the sampler uses nothing of the data.
func (c *Candidate) fromNoise() bool {
	return !c.Matched && c.plain()
}

// plain reports whether a solver made the plan, the same for all data.
func (c *Candidate) plain() bool { return c.Solver != localName && c.Solver != fittedName }

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

// onRules returns each solver on EDM's rule from a noise level, with each exponent.
func (f *fewStepSearch) onRules(sigma float64) (out []*Candidate, err error) {
	for _, name := range f.Solvers {
		for _, rule := range rules {
			c, err := f.onPolynomial(name, sigma, rule.rho, rule.levels)
			if err != nil {
				return nil, err
			}
			if c != nil {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// onGaussian returns the solver that is closest to the data's Gaussian from a noise level, on the levels that suit it
// there.
func (f *fewStepSearch) onGaussian(ctx context.Context, sigma float64) (*Candidate, error) {
	var closest *gaussian.Nodes
	for _, name := range f.Solvers {
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
	return plainCandidate(closest.Sampler, closest.Schedule, "gaussian")
}

// plainCandidate returns a sampler by a solver along a schedule.
func plainCandidate(set solver.Settings, s *schedule.Schedule, levels string) (*Candidate, error) {
	plan, err := solver.New(set, s, 0)
	if err != nil {
		return nil, err
	}
	tails := func() ([][]solver.Stage, error) { return solver.Tails(set, s, 0) }
	return &Candidate{
		Plan: plan, Solver: set.Solver, SigmaMax: plan.Init[0], Levels: levels, tails: tails, early: tails,
		end: s.Sigma(0, plan.T[len(plan.T)-1]),
	}, nil
}

// given returns a sampler by coefficients along a schedule.
func given(name string, k solver.Coefficients, s *schedule.Schedule, levels string) (*Candidate, error) {
	plan, err := k.Plan(s)
	if err != nil {
		return nil, err
	}
	return &Candidate{
		Plan: plan, Solver: name, SigmaMax: plan.Init[0], Levels: levels, end: k.Sigma[len(k.Sigma)-1],
	}, nil
}

// localCandidates returns samplers by the statistics of the denoiser on EDM's rule, from noise, and from the data's law
// at lower noise levels.
func (f *fewStepSearch) localCandidates() (out []*Candidate, err error) {
	for halving := range levelHalvings + 1 {
		if f.statistics == nil || halving == 1 || f.tooLow(halving) {
			continue
		}
		sigma := f.halvedLevel(halving)
		path, err := schedule.EDM(sigma*sigma, f.G0)
		if err != nil {
			return nil, err
		}
		local := f.statistics.Sampler(0)
		levels := schedule.EDMLevels(sigma, max(schedule.DefaultSigmaMin, path.Sigma(0, 0)), schedule.EDMRho, f.NFE+1)
		k := local.On(levels)
		c, err := given(localName, k, path, solver.GridPolynomial)
		if err != nil {
			return nil, err
		}
		c.tails = func() ([][]solver.Stage, error) { return stagesOf(local.Tails(k)), nil }
		c.early, c.Matched = c.tails, halving > 0
		out = append(out, c)
	}
	return out, nil
}

// stagesOf returns tails as stages.
func stagesOf(tails []solver.Weights) (out [][]solver.Stage) {
	for _, w := range tails {
		out = append(out, w.Steps())
	}
	return out
}

// fits returns the number of fitted candidates, from the data's law at the highest level halved once, twice, …
func (f *fewStepSearch) fits() (n int) {
	if f.statistics == nil || f.fitSamples() < minFitTrajectories {
		return 0
	}
	for n < maxFits && !f.tooLow(n+1) {
		n++
	}
	return n
}

// fitSamples returns the number of trajectories of a fit that memory allows.
func (f *fewStepSearch) fitSamples() int {
	return min(fitTrajectories, maxFitNumbers/(2*f.h*f.w*f.c*f.NFE))
}

// fittedCandidate returns a sampler from the data's law at a halved level, with noise levels that suit the converged
// trajectories and coefficients fitted to them. Its last step is scaled to the squares of converged samples in every
// part: samples of least squared error are too smooth.
func (f *fewStepSearch) fittedCandidate(ctx context.Context, halving int) (*Candidate, error) {
	sigma := f.halvedLevel(halving)
	path, err := pathToZero(sigma*sigma, f.G0)
	if err != nil {
		return nil, err
	}
	n := f.fitSamples()
	t := f.trajectories(nil, 3*f.Samples, 2*n)
	t.Start = f.images.Start
	r, err := newReference(ctx, f.network, path, f.G0, f.Levels, t)
	if err != nil {
		return nil, err
	}
	nodes := r.nodes(f.NFE)
	if nodes == nil {
		return nil, ErrNotFinite
	}
	fit, err := r.fit(ctx, n, nodes, f.statistics.Sampler(0))
	if err != nil {
		return nil, err
	}
	fit.scaled = true
	if err := fit.finish(&fit.fitted); err != nil {
		return nil, err
	}
	c, err := fit.candidate("trajectories")
	if err == nil {
		c.Matched = true
	}
	return c, err
}

// onPolynomial returns a sampler on the levels of the grid polynomial from a noise level, with the exponent ρ, or nil
// if the network knows too few.
func (f *fewStepSearch) onPolynomial(name string, sigma, rho float64, levels string) (*Candidate, error) {
	set := solver.Settings{Solver: name, NFE: f.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial, Rho: rho}}
	path, err := schedule.EDM(sigma*sigma, f.G0)
	if err != nil {
		return nil, err
	}
	if f.Levels != nil {
		if set, err = set.Resolve(); err != nil {
			return nil, err
		}
		known := f.known(schedule.EDMLevels(sigma, max(schedule.DefaultSigmaMin, path.Sigma(0, 0)), rho, set.Steps+1))
		if known == nil {
			return nil, nil
		}
		if path, err = schedule.EDM(known[0]*known[0], f.G0); err != nil {
			return nil, err
		}
		set = solver.Settings{Solver: name, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: known}}
	}
	return plainCandidate(set, path, levels)
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
	if c.drawn == nil {
		c.drawn = &sampler.Moments{Parts: frechet.PartsLike(f.images.References, 1)}
	}
	if err := f.network.Follow(ctx, f.trajectoriesOf(c, c.Plan, c.Samples, n), c.drawn); err != nil {
		return err
	}
	c.Samples += n
	c.Distances = frechet.Distances(f.images.References, c.drawn.Parts[0])
	return nil
}
