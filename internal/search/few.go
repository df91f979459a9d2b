// Package search chooses how a network is sampled: the sampler that does best at few evaluations (Few with images,
// Paired without).
//
// A search touches a network through sampler.Ensemble alone: it sends plans and gets sums back, wherever the network
// is. Its candidates are plans. It knows no requests and nothing that is stored.
//
// Begin with few.go.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/passes"
)

// How the samples of a search are spent. All candidates see the same latents.
const (
	// firstRoundSamples is the least number of samples of a candidate in the first round. It sees a sixteenth of all if
	// that is more.
	firstRoundSamples = 64
	// secondRoundCandidates candidates are measured on twice as many samples, and finalCandidates on all, apart from
	// the best of each family.
	secondRoundCandidates = 16
	finalCandidates       = 3
	// odeErrorLatents is the number of trajectories of the ODE error.
	odeErrorLatents = 16
	// heldParts is the number of parts of the held-out samples that are left out in turn.
	heldParts = 8
)

// streamSearch separates the seeds of a search or a fit from those of samples.
const streamSearch = 0x6f776e73

// firstSeed returns the first seed of a search or a fit. Users sample with the seeds 0, 1, 2, …: if a search used
// these, its choice would be measured on the latents that it was chosen by.
func firstSeed(seed uint64) uint64 { return latent.Uint64(seed, streamSearch, 0) }

// Settings of a search for a sampler of few evaluations.
type Settings struct {
	NFE     int
	Solvers []string // to try
	Samples int      // of each candidate of Few, and as many held back
	Seed    uint64
	G0, T   float64 // variances between which the network is sampled
	// Times are noise levels at evenly spaced times of the network's own, decreasing, for plain samplers of Paired; nil
	// for none.
	Times []float64
	// Levels are the noise levels that the network knows, decreasing, at least LeastLevels; nil for all. Samplers on some
	// of them are plain, or without images fitted.
	Levels []float64
	// Label returns the label of sample i, which has a seed; −1 for none.
	Label func(i int, seed uint64) int32
	// Learn adds a sampler whose levels and coefficients are learned through the network, from those of a fit. nil: if the
	// budget suffices. true raises the default budget so that it does.
	Learn *bool
	// Budget is the largest number of evaluations; 0: what the samples of Few need, or the latents of Paired in a time.
	Budget int
	// Seconds, unless it is 0, replaces Budget by the evaluations in this time.
	Seconds float64
	// Planned, which may be nil, is called before a search with the evaluations that it takes, within a factor of 1.5 as
	// measured.
	Planned func(evaluations int)
	// LearnGuidance adds the guidance of each evaluation, of a guided network, to what is learned.
	LearnGuidance bool
	// Progress may be nil.
	Progress *Progress
}

// searcher is a search on a network.
type searcher struct {
	Settings
	network sampler.Ensemble
	allowed int // evaluations to learn
	within  int // evaluations in defaultSeconds
}

func newSearcher(network sampler.Ensemble, set Settings) searcher {
	if set.Progress == nil {
		set.Progress = NewProgress(nil)
	}
	return searcher{Settings: set, network: network}
}

// known returns noise levels moved to the nearest that the network knows, each to another, or nil if there are too few.
// The last, at which the network is not evaluated, stays.
func (s *searcher) known(levels []float64) []float64 {
	if s.Levels == nil {
		return levels
	}
	out, next, n := slices.Clone(levels), 0, len(levels)-1
	for i := range n {
		last := len(s.Levels) - (n - i)
		far := func(k int) float64 { return math.Abs(math.Log(s.Levels[k]) - math.Log(levels[i])) }
		if next > last {
			return nil
		}
		for k := next; k <= last; k++ {
			if far(k) < far(next) {
				next = k
			}
		}
		out[i] = s.Levels[next]
		next++
	}
	return out
}

// trajectories returns the latents first … first + n − 1 of the search, with a plan.
func (s *searcher) trajectories(p *solver.Plan, first, n int) sampler.Trajectories {
	t := sampler.Trajectories{
		Plan: p, Seed: firstSeed(s.Seed) + uint64(first), Labels: make([]int32, n), Progress: s.Progress.Add,
	}
	for i := range t.Labels {
		t.Labels[i] = s.Label(first+i, t.Seed+uint64(i))
	}
	return t
}

// pace sets within, the number of evaluations in defaultSeconds, or Budget, those in Seconds.
func (s *searcher) pace(ctx context.Context) error {
	path, err := pathToZero(s.T, s.G0)
	if err != nil {
		return err
	}
	one, err := plainCandidate(solver.Settings{
		Solver: "euler", Grid: solver.Grid{Kind: solver.GridSigma, Sigma: []float64{math.Sqrt(s.T), lastLevel}},
	}, path, "")
	if err != nil {
		return err
	}
	var took float64
	s.Progress.Begin("rate", 0, 2*pilots)
	for range 2 { // the first compiles
		begun := time.Now()
		if err := s.network.Follow(ctx, s.trajectories(one.Plan, farSeeds, pilots), &sampler.Errors{}); err != nil {
			return err
		}
		took = max(1e-9, time.Since(begun).Seconds())
	}
	most := func(seconds float64) int { return int(min(seconds*pilots/took, 1<<40)) }
	if s.within = most(defaultSeconds); s.Seconds > 0 {
		s.Budget = max(1, most(s.Seconds))
	}
	return nil
}

// pilots are the evaluations of a measurement of the rate, of latents from farSeeds on, which nothing else uses.
const (
	pilots   = 64
	farSeeds = 1 << 32
)

// A BudgetError is returned if a search cannot do with so few evaluations.
type BudgetError struct{ Budget, Least int }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("budget must be at least %d evaluations here, got %d", e.Least, e.Budget)
}

// FewResult is the result of a search for a sampler of few evaluations.
type FewResult struct {
	// Tries are the candidates with finite samples, best first. Those dropped early are last.
	Tries           []*Candidate
	Chosen, Against *Candidate   // see choose
	Gain            Gain         // of Chosen over Against; 0 if they are one
	Start           *start.Start // that Chosen starts from; nil: from noise alone
	// Tails are those of Chosen's plan: see [solver.Tails].
	Tails [][]solver.Stage
	// Stopped is true if the network left before the end. Chosen is then the first of Tries, and Gain may be 0.
	Stopped bool
	Paired  bool // there were no images
	HeldOut int  // the number of samples, or latents, that nothing was chosen by
}

// Gain is the ratio of two samplers' scores on the same held-out latents: ln of it, with its jackknife error. Mean is
// that of the mean squared errors of Paired.
type Gain struct {
	Change, Stderr float64
	Mean           *Gain
}

// Clear reports whether the logarithm of the ratio is negative by its standard error. Where two samplers are alike,
// either choice does.
func (g Gain) Clear() bool { return g.Change+g.Stderr < 0 }

// ErrNotFinite is returned if the samples of all plain samplers are not finite, or those of the choice on held-out
// latents. Other samplers whose samples are not finite are left out of the tries.
var ErrNotFinite = passes.ErrNotFinite

// ErrTooLarge is returned if a search should learn from images that are too large for the trajectories of a fit.
var ErrTooLarge = errors.New("images are too large to learn a sampler from; search without learning")

// fewStepSearch is one search for a sampler of few evaluations.
type fewStepSearch struct {
	searcher
	ctx        context.Context
	images     *Images
	law        *gaussian.Spectrum // of the images, with sampling started from their own law
	statistics *local.Statistics  // of the denoiser, for plans by part; nil for none
	h, w, c    int
}

// Few returns the best sampler among candidates on a network, compared by their distances to the images that it was
// made for. Errors are *BudgetError, ErrTooLarge, ErrNotFinite, or those of network.
func Few(ctx context.Context, network sampler.Ensemble, images *Images, set Settings) (*FewResult, error) {
	f := &fewStepSearch{
		searcher: newSearcher(network, set), ctx: ctx, images: images,
		law: images.Spectrum.WithMatchedStart(), // the levels are chosen for the start of all images
	}
	f.h, f.w, f.c = network.Shape()
	byPart := f.Levels == nil // statistics are measured, and levels learned, between those that a network knows
	learnable := byPart && f.fitSamples() >= minFitTrajectories
	if byPart && !learnable && f.Learn != nil && *f.Learn {
		return nil, ErrTooLarge
	}
	if set.Budget == 0 && set.Seconds > 0 {
		if err := f.pace(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.spend(learnable && (f.Learn == nil || *f.Learn)); err != nil {
		return nil, err
	}
	if f.allowed > 0 {
		f.Progress.total += shareOfLearn
	}
	if byPart {
		f.Progress.Begin("statistics", shareOfStatistics, 0)
		var err error
		if f.statistics, err = network.Statistics(ctx, set.T, images.Spectrum, f.Progress.At); err != nil {
			return nil, err
		}
	}
	return f.choose(ctx)
}

// statisticsEvaluations is the number of evaluations of passes.MeasureStatistics by default.
const statisticsEvaluations = 160 * 24

// leastSamples is the least number of samples of a candidate within a budget.
const leastSamples = 64

// spend reduces Samples to keep to the budget. It allows what is left to learning, at most as much as the rest of the
// search unless that was asked for.
func (f *fewStepSearch) spend(learn bool) error {
	asked := f.Learn != nil && *f.Learn
	reserved := 0 // to learn, if asked for
	if learn && asked {
		reserved = f.learnCost(leastRounds)
	}
	fixed, raced := f.evaluations()
	for f.Budget > 0 && fixed+raced+reserved > f.Budget {
		if f.Samples <= leastSamples {
			return &BudgetError{f.Budget, fixed + raced + reserved}
		}
		f.Samples = max(leastSamples, f.Samples*7/8)
		fixed, raced = f.evaluations()
	}
	rest := fixed + raced
	if learn {
		f.allowed = (learnStarts + 1) * f.learnCost(learnRounds)
		if !asked {
			f.allowed = min(f.allowed, rest)
		}
		if f.Budget > 0 {
			f.allowed = min(f.allowed, f.Budget-rest)
		}
		if f.allowed < f.learnCost(leastRounds) {
			f.allowed = 0
		}
	}
	f.announce(fixed + raced*3/4)
	return nil
}

// announce tells Planned how many evaluations there will be: some without learning, and about a third of those that
// learning may take, which ends once it gains little.
func (s *searcher) announce(others int) {
	if s.Planned != nil {
		s.Planned(others + s.allowed/3)
	}
}

// learnCost returns the evaluations to learn a sampler in some rounds, and to measure it first.
func (f *fewStepSearch) learnCost(rounds int) int {
	return min(learnRows, f.fitSamples())*learnEvaluations(f.NFE, rounds, f.LearnGuidance) + f.firstRound()*f.NFE
}

// evaluations returns the numbers of evaluations of the search without learning: those that it makes, and the most of
// races, which candidates leave early.
func (f *fewStepSearch) evaluations() (fixed, raced int) {
	n, first, each, statistics := f.NFE, f.firstRound(), len(rules), 0
	candidates := 0
	if f.Levels == nil {
		each = 1
		candidates += matchedHalvings - firstMatched + 1 + levelHalvings + maxFits + 1
		candidates += (refined + refinedAnalytical) * (len(rules) - 1)
		statistics = statisticsEvaluations + 2*f.fitSamples()*(2*fineSteps+(maxFits+1)*n*(n+1)/2+4*(n-1))
	}
	candidates += len(f.Solvers) * each * (levelHalvings + analyticalHalvings + matchedHalvings - firstMatched + 1)
	second := f.secondRound()
	const champions = families
	samples := candidates*first + (secondRoundCandidates+champions)*(second-first) +
		(finalCandidates+champions)*(f.Samples-second) + (champions+finalCandidates-1)*f.Samples
	return statistics + odeErrorLatents*(n+2*teacherSteps), samples * n
}

// firstRound returns the number of samples of a candidate in the first round.
func (f *fewStepSearch) firstRound() int { return min(f.Samples, max(firstRoundSamples, f.Samples/16)) }

// secondRound returns the number of samples of a candidate after the second round.
func (f *fewStepSearch) secondRound() int { return min(f.Samples, 2*f.firstRound()) }

// choose ranks the candidates, and chooses on held-out samples.
func (f *fewStepSearch) choose(ctx context.Context) (*FewResult, error) {
	f.Progress.Begin("levels", shareOfLevels, 0)
	fromNoise, err := f.noiseCandidates()
	if err != nil {
		return nil, err
	}
	analytical, err := f.analyticalCandidates()
	if err != nil {
		return nil, err
	}
	matched, err := f.matchedCandidates(ctx)
	if err != nil {
		return nil, err
	}
	localCandidates, err := f.localCandidates()
	if err != nil {
		return nil, err
	}
	found := &FewResult{HeldOut: f.Samples}
	all, err := f.rankCandidates(ctx, slices.Concat(fromNoise, analytical, matched, localCandidates))
	if err = found.rank(all, err); err != nil {
		return nil, err
	}
	judged := contenders(found.Tries, finalCandidates, f)
	for _, c := range found.Tries {
		c.drawn = nil
	}
	if !found.Stopped {
		err = found.unlessStopped(f.measureHeldOut(found, judged))
	}
	if err != nil {
		return nil, err
	}
	if found.Chosen.Matched {
		found.Start = f.images.Start
	}
	if !found.Stopped && f.Levels == nil {
		if err = f.solutionError(ctx, found.Chosen); errors.Is(err, sampler.ErrLeft) { // it is judged all the same
			err = nil
		}
	}
	return found, cmp.Or(err, found.setTails())
}

// setTails sets Tails, without evaluations if the network has left.
func (r *FewResult) setTails() (err error) {
	if r.Tails != nil {
		return nil
	}
	r.Tails, err = r.Chosen.early()
	return err
}

// rank sets Tries and Against, given candidates that are ranked best first and the error that ended the ranking.
func (r *FewResult) rank(all []*Candidate, err error) error {
	r.Tries = slices.DeleteFunc(all, func(c *Candidate) bool { return math.IsInf(c.score(), 1) })
	rival := slices.IndexFunc(r.Tries, (*Candidate).plain)
	switch {
	case errors.Is(err, sampler.ErrLeft) && rival < 0:
		return err
	case err == nil && rival < 0:
		return ErrNotFinite
	case rival >= 0:
		r.Against = r.Tries[rival]
	}
	return r.unlessStopped(err)
}

// unlessStopped returns err, or sets Stopped and returns nil if the network has left.
func (r *FewResult) unlessStopped(err error) error {
	if errors.Is(err, sampler.ErrLeft) {
		r.Stopped, r.Chosen, err = true, r.Tries[0], nil
	}
	return err
}

// choose sets Chosen, Against and Gain on held-out latents, on which measure measures a candidate. Of contenders, from
// the simplest on, Chosen is the last that is clearly better than the one chosen before, or which is better than one of
// its own family by all latents. Against is the best of the plain ones that are simpler, or Chosen if none is.
func (r *FewResult) choose(
	contenders []*Candidate, measure func(*Candidate) error, gain func(c, other *Candidate) Gain,
	clearly func(c, other *Candidate) bool,
) error {
	r.Chosen = nil
	var judged []*Candidate
	for _, c := range contenders {
		switch err := measure(c); {
		case errors.Is(err, ErrNotFinite):
			continue
		case err != nil:
			return err
		}
		judged = append(judged, c)
		better := r.Chosen == nil || clearly(c, r.Chosen)
		if !better && c.family() == r.Chosen.family() {
			better = c.score()*c.HeldOut.score() < r.Chosen.score()*r.Chosen.HeldOut.score()
		}
		if better {
			r.Chosen = c
		}
	}
	if r.Chosen == nil {
		return ErrNotFinite
	}
	r.Against = r.Chosen
	for _, c := range judged {
		simpler := c.plain() && c.family() < r.Chosen.family()
		if simpler && (r.Against == r.Chosen || c.HeldOut.score() < r.Against.HeldOut.score()) {
			r.Against = c
		}
	}
	if r.Against != r.Chosen {
		r.Gain = gain(r.Chosen, r.Against)
	}
	var err error
	r.Tails, err = r.Chosen.tails()
	return err
}

// measureHeldOut chooses on held-out samples.
func (f *fewStepSearch) measureHeldOut(found *FewResult, contenders []*Candidate) error {
	f.Progress.Begin("held back", shareOfHeldOut, len(contenders)*f.Samples*f.NFE)
	held := map[*Candidate][]float64{}
	gain := func(c, other *Candidate) (g Gain) {
		g.Change, g.Stderr = frechet.Change(held[other], held[c])
		return g
	}
	return found.choose(contenders, func(c *Candidate) (err error) {
		held[c], err = f.heldOutScores(f.ctx, c)
		return err
	}, gain, func(c, other *Candidate) bool { return gain(c, other).Clear() })
}

// heldOutScores sets the held-out distances of a candidate. It returns its scores with each part left out.
func (f *fewStepSearch) heldOutScores(ctx context.Context, c *Candidate) ([]float64, error) {
	references := f.images.Held
	drawn := &sampler.Moments{Parts: frechet.PartsLike(references, heldParts)}
	if err := f.network.Follow(ctx, f.trajectoriesOf(c, c.Plan, f.Samples, f.Samples), drawn); err != nil {
		return nil, err
	}
	c.HeldOut = frechet.Distances(references, frechet.Parts(drawn.Parts).Without(-1))
	if math.IsInf(c.HeldOut.score(), 1) {
		return nil, ErrNotFinite
	}
	return frechet.Parts(drawn.Parts).Scores(references), nil
}

// teacherSteps are those of the converged samples of the ODE error, by Heun's method on EDM's rule.
const teacherSteps = 32

// solutionError sets the difference of a sampler to the converged samples from the same initial states.
func (f *fewStepSearch) solutionError(ctx context.Context, c *Candidate) error {
	f.Progress.Begin("error", shareOfError, 0)
	from := max(c.SigmaMax, c.Analytical)
	path, err := pathToZero(from*from, f.G0)
	if err != nil {
		return err
	}
	fine := schedule.EDMLevels(from, c.end, schedule.EDMRho, teacherSteps+1)
	teacher, err := plainCandidate(solver.Settings{
		Solver: "heun", Grid: solver.Grid{Kind: solver.GridSigma, Sigma: fine},
	}, path, "")
	if err != nil {
		return err
	}
	var x [2]sampler.Samples
	for i, p := range []*solver.Plan{c.Plan, teacher.Plan} {
		if err := f.network.Follow(ctx, f.trajectoriesOf(c, p, 2*f.Samples, odeErrorLatents), &x[i]); err != nil {
			return err
		}
	}
	var sum float64
	for i, v := range x[0] {
		off := float64(v) - float64(x[1][i])
		sum += off * off
	}
	if c.ODEError = math.Sqrt(sum / float64(len(x[0]))); !setting.Finite(c.ODEError) {
		return ErrNotFinite
	}
	return nil
}

// rankCandidates races candidates, and adds fitted ones and a learned one. It returns all ranked, even with an error.
func (f *fewStepSearch) rankCandidates(ctx context.Context, unfitted []*Candidate) (all []*Candidate, err error) {
	defer func() { rank(all) }()
	all = slices.Clone(unfitted)
	first := f.firstRound()
	f.Progress.Begin("first round", shareOfFirstRound, len(all)*first*f.NFE)
	left, err := race(all, []round{{first, len(all)}}, f)
	if err != nil {
		return all, err
	}
	others, err := f.onOtherRules(left)
	if err != nil {
		return all, err
	}
	all = append(all, others...)
	others, err = race(others, []round{{first, len(others)}}, f)
	if err != nil {
		return all, err
	}
	left = append(left, others...)
	rank(left)
	starts := f.startsOfFits(left)
	fitting := func(evaluations int) { f.Progress.Begin("fit", shareOfFits/(2+maxFits), 2*f.fitSamples()*evaluations) }
	fitting(fineSteps)
	var fits []func() (*Candidate, error)
	if starts != nil {
		fromLaw, err := f.converge(ctx, f.images.Start)
		if err != nil {
			return all, err
		}
		for _, sigma := range starts {
			fits = append(fits, func() (*Candidate, error) { return f.fittedCandidate(ctx, fromLaw, sigma) })
		}
		fits = append(fits, func() (*Candidate, error) { return f.fittedFromNoise(ctx) })
	}
	for _, fitted := range fits {
		fitting(f.NFE * (f.NFE + 1) / 2)
		c, err := fitted()
		if errors.Is(err, ErrNotFinite) {
			continue
		}
		if err != nil {
			return all, err
		}
		f.Progress.Begin("first round", 0, 0)
		if err := f.measure(c, first); err != nil {
			return all, err
		}
		all, left = append(all, c), append(left, c)
	}
	rank(left)
	if f.allowed > 0 {
		learned, err := f.learn(left, shareOfLearn, func(c *Candidate) error { return f.measure(c, first) })
		all, left = append(all, learned...), append(left, learned...)
		if rank(left); err != nil {
			return all, err
		}
	}
	f.Progress.Begin("last rounds", shareOfMore,
		(secondRoundCandidates*(f.secondRound()-first)+finalCandidates*(f.Samples-f.secondRound()))*f.NFE)
	left = survivors(left, secondRoundCandidates, f)
	_, err = race(left, []round{{f.secondRound(), secondRoundCandidates}, {f.Samples, finalCandidates}}, f)
	return all, err
}

// The shares of a search's parts in its time, in thousandths, as measured at 5 evaluations on a small network.
const (
	ShareOfImages     = 130 // of MeasureImages, before the search
	shareOfStatistics = 50
	shareOfLevels     = 30
	shareOfFirstRound = 290
	shareOfFits       = 100
	shareOfMore       = 210 // a third for the second round, the rest for the last
	shareOfHeldOut    = 150
	shareOfError      = 40
	shareOfLearn      = 400 // beyond those of all others, which are 1000
)
