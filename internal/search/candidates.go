package search

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
)

const (
	// levelHalvings is the number of times that the highest noise level is halved for lower initial levels, and
	// matchedHalvings that with a start from the data's law, firstMatched first.
	levelHalvings, matchedHalvings = 4, 6
	firstMatched                   = 2
	// analyticalHalvings is the number of times that the highest noise level is halved for starts with an analytical first
	// step.
	analyticalHalvings = 3
	// leastNoise is the least level at which a start from noise alone is tried, except a quarter of the highest level.
	// Little is left there of data of standard deviation 0.5.
	leastNoise = 8
	// maxFits bounds the number of fitted candidates.
	maxFits = 2
	// refined is the number of plain candidates, the best of the first round, that are tried on the other rules, too, and
	// refinedAnalytical that of the best with an analytical first step.
	refined           = 4
	refinedAnalytical = 2
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

// learnedLevels names the levels that are learned.
const learnedLevels = "learned"

// Candidate is a sampler that a search may choose. Distances are squared Fréchet distances to the data, less those of
// as many images of it, divided by the variance of their features.
type Candidate struct {
	Plan   *solver.Plan
	Solver string // that made the plan: a name of the register, local or fitted
	// SigmaMax is the noise level at which the plan begins.
	SigmaMax float64
	Matched  bool // starts from the law of the data; else from noise alone
	// Deviation is that of the noise which a start is made of, if it is not SigmaMax; else 0.
	Deviation float64
	// Analytical is the noise level of the analytical first step that led to the start; 0: there was none.
	Analytical float64
	Levels     string // polynomial, or with ρ: EDM's rule to σ = 0.002; gaussian: chosen for the solver
	// Samples is the number that the distances are of: fewer than all if the candidate was dropped early.
	Samples int
	Distances
	HeldOut  Distances // of the best and its rival, on samples that nothing was chosen by
	ODEError float64   // root mean square difference to the converged samples from the same start, of the best

	// tails returns the weights of samplers that begin at a later step. early returns those that need no evaluation.
	tails, early func() ([][]solver.Stage, error)
	end          float64          // noise level at which the plan ends
	drawn        *sampler.Moments // so far, in heldParts parts
	scores       []float64        // without each of them; nil: not known
	fit          *fitter          // that made its coefficients; nil for none
	squares      []float64        // of the errors so far, in a search without images
}

// Distances are those of samples to the images by the features of each reference, or the mean squared error of a search
// without images.
type Distances []float64

// scaled reports whether it starts from noise of a fitted deviation.
func (c *Candidate) scaled() bool { return c.Deviation != 0 }

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

// rule is EDM's rule with an exponent ρ, by the name of its levels.
type rule struct {
	levels string
	rho    float64
}

// rules are those that are tried.
var rules = []rule{{solver.GridPolynomial, schedule.EDMRho}, {"polynomial 4", 4}, {"polynomial 3", 3}}

// noiseCandidates returns samplers that use nothing of the data: from noise at the highest level, at a quarter of it,
// and at its halves down to leastNoise.
func (f *fewStepSearch) noiseCandidates() (out []*Candidate, err error) {
	for halving := range levelHalvings {
		sigma := f.halvedLevel(halving)
		if halving != 0 && halving != 2 && sigma < leastNoise || f.tooLow(halving) {
			continue
		}
		level, err := f.onRules(sigma, 0, false)
		if err != nil {
			return nil, err
		}
		out = append(out, level...)
	}
	return out, nil
}

// analyticalCandidates returns solvers on EDM's rule from noise at the highest level and its halves, whose first
// evaluation is that of data about 0 of the images' mean square: it takes none of the network.
func (f *fewStepSearch) analyticalCandidates() (out []*Candidate, err error) {
	for halving := range analyticalHalvings {
		if f.tooLow(halving) {
			continue
		}
		level, err := f.onRules(f.halvedLevel(halving), f.meanSquare(), false)
		if err != nil {
			return nil, err
		}
		out = append(out, level...)
	}
	return out, nil
}

// meanSquare returns that of the values of the images.
func (f *fewStepSearch) meanSquare() (sum float64) {
	for _, d := range f.images.Spectrum.Directions {
		sum += (d.Variance + d.Mean*d.Mean) / float64(f.h*f.w*f.c)
	}
	return sum
}

// matchedCandidates returns samplers from the data's law: for each initial noise level that is well below the highest,
// where a start from noise is as good, those on EDM's rule, and the one that is closest to the Gaussian of those on the
// levels that suit the solver there.
func (f *fewStepSearch) matchedCandidates(ctx context.Context) (out []*Candidate, err error) {
	for halving := firstMatched; halving <= matchedHalvings && !f.tooLow(halving); halving++ {
		sigma := f.halvedLevel(halving)
		level, err := f.onRules(sigma, 0, true)
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

// onRules returns each solver on EDM's rule from a noise level, with the exponent that suits the Gaussian of the data
// best, or with each if levels are given. With a variance they have an analytical first step, and the middle exponent.
func (f *fewStepSearch) onRules(sigma, variance float64, matched bool) (out []*Candidate, err error) {
	law := f.images.Spectrum
	if matched {
		law = f.law
	}
	for _, name := range f.Solvers {
		tried := rules
		switch {
		case f.Levels != nil:
		case variance > 0:
			tried = rules[1:2]
		default:
			if tried, err = f.bestRule(name, sigma, law); err != nil {
				return nil, err
			}
		}
		for _, rule := range tried {
			c, err := f.onPolynomial(name, sigma, rule, variance)
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

// bestRule returns the rule, one of rules, on which a solver from a noise level is closest to a Gaussian.
func (f *fewStepSearch) bestRule(name string, sigma float64, law *gaussian.Spectrum) (best []rule, err error) {
	path, err := schedule.EDM(sigma*sigma, f.G0)
	if err != nil {
		return nil, err
	}
	least := math.Inf(1)
	for i, rule := range rules {
		set := solver.Settings{Solver: name, NFE: f.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial, Rho: rule.rho}}
		report, err := law.BenchSampler(basis.None(f.h, f.w), set, path)
		if err != nil {
			return nil, err
		}
		if report.W2 < least {
			least, best = report.W2, rules[i:i+1]
		}
	}
	return best, nil
}

// onOtherRules returns the best plain candidates of a race, and the best with an analytical first step, on the rules
// that were left out for them.
func (f *fewStepSearch) onOtherRules(ranked []*Candidate) (out []*Candidate, err error) {
	if f.Levels != nil { // all were tried
		return nil, nil
	}
	analytical := func(c *Candidate) bool { return c.Analytical > 0 }
	var best []*Candidate
	left := refinedAnalytical
	for _, c := range ranked {
		if !c.plain() || !slices.ContainsFunc(rules, func(r rule) bool { return r.levels == c.Levels }) {
			continue
		}
		if len(best) < refined || analytical(c) && left > 0 {
			best = append(best, c)
		}
		if analytical(c) {
			left--
		}
	}
	for _, c := range best {
		for _, rule := range rules {
			if rule.levels == c.Levels {
				continue
			}
			sigma, variance := c.SigmaMax, 0.0
			if analytical(c) {
				sigma, variance = c.Analytical, f.meanSquare()
			}
			other, err := f.onPolynomial(c.Solver, sigma, rule, variance)
			if err != nil {
				return nil, err
			}
			other.Matched = c.Matched
			out = append(out, other)
		}
	}
	return out, nil
}

// onGaussian returns the solver that is closest to the data's Gaussian from a noise level, on the levels that suit it
// there.
func (f *fewStepSearch) onGaussian(ctx context.Context, sigma float64) (*Candidate, error) {
	all, errs := make([]*gaussian.Nodes, len(f.Solvers)), make([]error, len(f.Solvers))
	safely.For(len(all), func(i int) {
		all[i], errs[i] = gaussian.Optimize(ctx, f.law, basis.None(f.h, f.w), gaussian.Settings{
			Sampler: solver.Settings{Solver: f.Solvers[i], NFE: f.NFE}, T: sigma * sigma, G0: f.G0,
			Family: schedule.Family{Basis: basis.KindNone},
		})
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	closest := slices.MinFunc(all, func(a, b *gaussian.Nodes) int { return cmp.Compare(a.Report.W2, b.Report.W2) })
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
		Plan: plan, Solver: name, SigmaMax: math.Sqrt(plan.Stages[0].G[0]), Deviation: k.Deviation, Levels: levels,
		end: k.Sigma[len(k.Sigma)-1],
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

// startsOfFits returns the initial noise levels of fitted candidates: those of the best samplers from the data's law.
func (f *fewStepSearch) startsOfFits(ranked []*Candidate) (out []float64) {
	if f.statistics == nil || f.fitSamples() < minFitTrajectories {
		return nil
	}
	for _, c := range ranked {
		if c.Matched && len(out) < maxFits && !slices.Contains(out, c.SigmaMax) {
			out = append(out, c.SigmaMax)
		}
	}
	return out
}

// fitSamples returns the number of trajectories of a fit that memory allows.
func (f *fewStepSearch) fitSamples() int {
	return min(fitTrajectories, maxFitNumbers/(2*f.h*f.w*f.c*f.NFE))
}

// converge returns a reference of fits: trajectories at the highest noise level from the data's law, or from noise
// alone if law is nil.
func (f *fewStepSearch) converge(ctx context.Context, law *start.Start) (*reference, error) {
	path, err := pathToZero(f.T, f.G0)
	if err != nil {
		return nil, err
	}
	t := f.trajectories(nil, 3*f.Samples, 2*f.fitSamples())
	t.Start = law
	return newReference(ctx, f.network, path, f.G0, f.Levels, t)
}

// fittedCandidate returns a sampler from the data's law at a noise level, with noise levels that suit the converged
// trajectories from the highest level and coefficients fitted to them, so that it corrects its own start. Its last step
// is scaled to the squares of converged samples in every part: samples of least squared error are too smooth.
func (f *fewStepSearch) fittedCandidate(ctx context.Context, r *reference, sigma float64) (*Candidate, error) {
	every := r.states.Every
	nodes := r.nodes(f.NFE, startingAt((r.nearest(sigma)+every/2)/every*every))
	if nodes == nil {
		return nil, ErrNotFinite
	}
	c, err := f.fittedOn(ctx, r, nodes)
	if err == nil {
		c.Matched = true
	}
	return c, err
}

// fittedFromNoise returns a sampler from noise of a fitted deviation, with levels and coefficients that are fitted to
// the converged trajectories from noise alone.
func (f *fewStepSearch) fittedFromNoise(ctx context.Context) (*Candidate, error) {
	r, err := f.converge(ctx, nil)
	if err != nil {
		return nil, err
	}
	nodes := r.nodes(f.NFE, r.products.startError)
	if nodes == nil {
		return nil, ErrNotFinite
	}
	return f.fittedOn(ctx, r, nodes)
}

// fittedOn returns a sampler whose coefficients are fitted between nodes of a reference, its last step scaled.
func (f *fewStepSearch) fittedOn(ctx context.Context, r *reference, nodes []int) (*Candidate, error) {
	fit, err := r.fit(ctx, f.fitSamples(), nodes, f.statistics.Sampler(0))
	if err != nil {
		return nil, err
	}
	fit.scaled = true
	if err := fit.finish(&fit.fitted); err != nil {
		return nil, err
	}
	return fit.candidate("trajectories")
}

// onPolynomial returns a sampler on the levels of the grid polynomial from a noise level, by a rule, or nil if the
// network knows too few. With a variance it has an analytical first step, and is nil if it cannot have one.
func (f *fewStepSearch) onPolynomial(name string, sigma float64, by rule, variance float64) (*Candidate, error) {
	set := solver.Settings{Solver: name, NFE: f.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial, Rho: by.rho}}
	if variance > 0 {
		set.NFE++
	}
	path, err := schedule.EDM(sigma*sigma, f.G0)
	if err != nil {
		return nil, err
	}
	if f.Levels != nil {
		if set, err = set.Resolve(); err != nil {
			return nil, err
		}
		known := f.known(schedule.EDMLevels(sigma, max(schedule.DefaultSigmaMin, path.Sigma(0, 0)), by.rho, set.Steps+1))
		if known == nil {
			return nil, nil
		}
		if path, err = schedule.EDM(known[0]*known[0], f.G0); err != nil {
			return nil, err
		}
		set = solver.Settings{Solver: name, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: known}}
	}
	c, err := plainCandidate(set, path, by.levels)
	if err != nil || variance == 0 {
		return c, err
	}
	return c.analytical(variance)
}

// analytical returns a plain sampler from noise with an analytical first step, of data about 0 of a variance, or nil if
// it cannot have one.
func (c *Candidate) analytical(variance float64) (*Candidate, error) {
	tails, err := c.tails()
	if err != nil {
		return nil, err
	}
	p, tails := solver.Analytical(c.Plan, tails, variance)
	if p == nil {
		return nil, nil
	}
	out := *c
	out.Plan, out.Analytical, out.Deviation = p, c.SigmaMax, p.Init[0]
	out.SigmaMax = math.Sqrt(p.Stages[0].G[0])
	out.tails = func() ([][]solver.Stage, error) { return tails, nil }
	out.early = out.tails
	return &out, nil
}

// trajectoriesOf returns trajectories with the initial states of a candidate.
func (f *fewStepSearch) trajectoriesOf(c *Candidate, p *solver.Plan, first, n int) sampler.Trajectories {
	t := f.trajectories(p, first, n)
	if c.Matched {
		t.Start = f.images.Start
	}
	return t
}

// measure implements [judge].
func (f *fewStepSearch) measure(c *Candidate, n int) error {
	if n -= c.Samples; n <= 0 {
		return nil
	}
	if c.drawn == nil {
		c.drawn = &sampler.Moments{Parts: frechet.PartsLike(f.images.References, heldParts)}
	}
	if err := f.network.Follow(f.ctx, f.trajectoriesOf(c, c.Plan, c.Samples, n), c.drawn); err != nil {
		return err
	}
	c.Samples, c.scores = c.Samples+n, nil
	c.Distances = frechet.Distances(f.images.References, frechet.Parts(c.drawn.Parts).Without(-1))
	return nil
}

// farBehind is the logarithm of a ratio of scores that needs no error to be believed.
const farBehind = 1.5

// gain implements [judge].
func (f *fewStepSearch) gain(c, other *Candidate) (g Gain) {
	if g.Change = math.Log(c.score() / other.score()); c == other || g.Change > farBehind {
		return g
	}
	g.Change, g.Stderr = frechet.Change(f.scoresOf(other), f.scoresOf(c))
	return g
}

// scoresOf returns the scores of a candidate without each part of its samples.
func (f *fewStepSearch) scoresOf(c *Candidate) []float64 {
	if c.scores == nil {
		c.scores = frechet.Parts(c.drawn.Parts).Scores(f.images.References)
	}
	return c.scores
}
