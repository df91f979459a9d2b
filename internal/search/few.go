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
	// secondRoundCandidates candidates, and secondRoundRivals of those from noise, are measured on twice as many samples.
	secondRoundCandidates = 20
	secondRoundRivals     = 4
	// finalCandidates candidates, and finalRivals of those from noise, are measured on all samples.
	finalCandidates = 4
	finalRivals     = 2
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
	// Learn adds a sampler whose levels and coefficients are learned through the network, from those of a fit. Paired
	// learns also without Learn if Budget suffices.
	Learn bool
	// Budget is the largest number of evaluations. 0 does not bound those of Few; for Paired it means defaultBudget, or
	// the least that suffices.
	Budget int
	// Planned, which may be nil, is called before the first evaluation with the most that there will be.
	Planned func(evaluations int)
	// Progress may be nil.
	Progress *Progress
}

// searcher is a search on a network.
type searcher struct {
	Settings
	network sampler.Ensemble
}

func newSearcher(network sampler.Ensemble, set Settings) searcher {
	if set.Progress == nil {
		set.Progress = NewProgress(nil)
	}
	return searcher{set, network}
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

// addLearned adds to ranked candidates the sampler that is learned from the best fitted one, measures it and ranks all
// again. If nothing was fitted, or the samples are not finite, it adds none.
func (s *searcher) addLearned(all []*Candidate, share int, measure func(*Candidate) error) ([]*Candidate, error) {
	s.Progress.Begin("learn", share, learnTrajectories*learnEvaluations(s.NFE))
	best := slices.IndexFunc(all, func(c *Candidate) bool { return c.fit != nil })
	if best < 0 {
		return all, nil
	}
	from := all[best]
	c, err := from.fit.learned(lowestOf(s.G0), s.Progress.Add)
	if err == nil {
		c.Matched = from.Matched
		err = measure(c)
	}
	switch {
	case errors.Is(err, ErrNotFinite):
		return all, nil
	case err != nil:
		return all, err
	}
	all = append(all, c)
	rank(all)
	return all, nil
}

// A BudgetError is returned if a search cannot do with so few evaluations.
type BudgetError struct{ Budget, Least int }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("budget must be at least %d evaluations here, got %d", e.Least, e.Budget)
}

// FewResult is the result of a search for a sampler of few evaluations.
type FewResult struct {
	// Tries are the candidates with finite samples, best first. Those dropped early are last.
	Tries []*Candidate
	// Against is the best of those from noise alone. Chosen is the first of Tries if its gain over Against is clear,
	// otherwise Against.
	Chosen, Against *Candidate
	Gain            Gain         // of the first of Tries over Against; 0 if they are one
	Start           *start.Start // that Chosen starts from; nil: from noise alone
	// Tails are those of Chosen's plan: see [solver.Tails].
	Tails [][]solver.Stage
	// Stopped is true if the network left before the end. Chosen is then the first of Tries, and Gain may be 0.
	Stopped bool
	Paired  bool // there were no images
	HeldOut int  // the number of samples, or latents, that nothing was chosen by
}

// Gain is the ratio of two samplers' scores on the same held-out latents.
type Gain struct{ Change, Stderr float64 } // ln of it, with its jackknife error

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
	images     *Images
	law        *gaussian.Spectrum // of the images, with sampling started from their own law
	statistics *local.Statistics  // of the denoiser, for plans by part; nil for none
	h, w, c    int
}

// Few returns the best sampler among candidates on a network, compared by their distances to the images that it was
// made for. Errors are *BudgetError, ErrTooLarge, ErrNotFinite, or those of network.
func Few(ctx context.Context, network sampler.Ensemble, images *Images, set Settings) (*FewResult, error) {
	f := &fewStepSearch{
		searcher: newSearcher(network, set), images: images,
		law: images.Spectrum.WithMatchedStart(), // the levels are chosen for the start of all images
	}
	f.h, f.w, f.c = network.Shape()
	byPart := f.Levels == nil // statistics are measured, and levels learned, between those that a network knows
	if f.Learn = f.Learn && byPart; f.Learn && f.fitSamples() < minFitTrajectories {
		return nil, ErrTooLarge
	}
	if f.Learn {
		f.Progress.total += shareOfLearn
	}
	if err := f.spend(); err != nil {
		return nil, err
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

// spend reduces Samples to keep to the budget.
func (f *fewStepSearch) spend() error {
	evaluations := f.evaluations()
	for f.Budget > 0 && evaluations > f.Budget {
		if f.Samples <= leastSamples {
			return &BudgetError{f.Budget, evaluations}
		}
		f.Samples = max(leastSamples, f.Samples*7/8)
		evaluations = f.evaluations()
	}
	if f.Planned != nil {
		f.Planned(evaluations)
	}
	return nil
}

// evaluations returns the largest number of evaluations of the search.
func (f *fewStepSearch) evaluations() int {
	candidates := len(f.Solvers)*len(rules)*(levelHalvings+matchedHalvings+1) + matchedHalvings + 1
	n, first, statistics := f.NFE, f.firstRound(), 0
	if f.Levels == nil {
		candidates += levelHalvings + maxFits
		statistics = statisticsEvaluations + 2*f.fitSamples()*(maxFits*(fineSteps+n*(n+1)/2)+4*(n-1))
	}
	if f.Learn {
		candidates++
		statistics += learnTrajectories * (learnEvaluations(n) + n)
	}
	second := f.secondRound()
	samples := candidates*first + (secondRoundCandidates+secondRoundRivals)*(second-first) +
		(finalCandidates+finalRivals)*(f.Samples-second) + 2*f.Samples
	return statistics + samples*n + odeErrorLatents*(n+2*teacherSteps)
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
	matched, err := f.matchedCandidates(ctx)
	if err != nil {
		return nil, err
	}
	localCandidates, err := f.localCandidates()
	if err != nil {
		return nil, err
	}
	found := &FewResult{HeldOut: f.Samples}
	all, err := f.rankCandidates(ctx, slices.Concat(fromNoise, matched, localCandidates))
	for _, c := range all {
		c.drawn = nil
	}
	if err = found.rank(all, err); err != nil {
		return nil, err
	}
	if !found.Stopped {
		err = found.unlessStopped(f.measureHeldOut(ctx, found))
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
	rival := slices.IndexFunc(r.Tries, (*Candidate).fromNoise)
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

// choose sets Chosen and Gain on held-out latents: Chosen is the best candidate if its gain over its rival from noise
// is clear, otherwise the rival. heldOut returns the scores of a candidate there, and gain compares those of the
// rival and the best.
func (r *FewResult) choose(
	heldOut func(*Candidate) ([]float64, error), gain func(rival, best []float64) (change, stderr float64),
) error {
	best, rival := r.Tries[0], r.Against
	against, err := heldOut(rival)
	if r.Chosen = rival; err != nil || best == rival {
		return err
	}
	scores, err := heldOut(best)
	if err != nil {
		return err
	}
	if r.Gain.Change, r.Gain.Stderr = gain(against, scores); r.Gain.Clear() {
		r.Chosen = best
	}
	r.Tails, err = r.Chosen.tails()
	return err
}

// measureHeldOut chooses on held-out samples.
func (f *fewStepSearch) measureHeldOut(ctx context.Context, found *FewResult) error {
	f.Progress.Begin("held back", shareOfHeldOut, 2*f.Samples*f.NFE)
	return found.choose(func(c *Candidate) ([]float64, error) { return f.heldOutScores(ctx, c) }, frechet.Change)
}

// heldOutScores sets the held-out distances of a candidate. It returns its scores with each part left out.
func (f *fewStepSearch) heldOutScores(ctx context.Context, c *Candidate) ([]float64, error) {
	references := f.images.References
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
const teacherSteps = 128

// solutionError sets the difference of a sampler to the converged samples from the same initial states.
func (f *fewStepSearch) solutionError(ctx context.Context, c *Candidate) error {
	f.Progress.Begin("error", shareOfError, 0)
	path, err := pathToZero(c.SigmaMax*c.SigmaMax, f.G0)
	if err != nil {
		return err
	}
	fine := schedule.EDMLevels(c.SigmaMax, c.end, schedule.EDMRho, teacherSteps+1)
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

// rankCandidates measures candidates, fitted ones and a learned one. It returns them ranked, even with an error. All
// are measured in round one; later rounds measure only the leaders and the best from noise.
func (f *fewStepSearch) rankCandidates(ctx context.Context, unfitted []*Candidate) (all []*Candidate, err error) {
	defer func() { rank(all) }()
	all = slices.Clone(unfitted)
	first := f.firstRound()
	if err := f.measureBest(ctx, all, len(all), 0, first, "first round", shareOfFirstRound); err != nil {
		return all, err
	}
	for i := range f.fits() {
		f.Progress.Begin("fit", shareOfFits/maxFits, 2*f.fitSamples()*(fineSteps+f.NFE*(f.NFE+1)/2))
		c, err := f.fittedCandidate(ctx, i+1)
		if errors.Is(err, ErrNotFinite) {
			continue
		}
		if err != nil {
			return all, err
		}
		f.Progress.Begin("first round", 0, 0)
		if err := f.draw(ctx, c, first); err != nil {
			return all, err
		}
		all = append(all, c)
	}
	rank(all)
	if f.Learn {
		measure := func(c *Candidate) error { return f.draw(ctx, c, first) }
		if all, err = f.addLearned(all, shareOfLearn, measure); err != nil {
			return all, err
		}
	}
	err = f.measureBest(
		ctx, all, secondRoundCandidates, secondRoundRivals, f.secondRound(), "second round", shareOfMore/3)
	if err != nil {
		return all, err
	}
	return all, f.measureBest(ctx, all, finalCandidates, finalRivals, f.Samples, "last round", 2*shareOfMore/3)
}

// measureBest measures the best n of ranked candidates, and the best rivals from noise, on more samples, and ranks all
// again.
func (f *fewStepSearch) measureBest(
	ctx context.Context, ranked []*Candidate, n, rivals, samples int, part string, share int,
) error {
	var measured []*Candidate
	evaluations := 0
	for i, c := range ranked {
		rival := c.fromNoise() && rivals > 0
		if rival {
			rivals--
		}
		if i < n || rival {
			measured = append(measured, c)
			evaluations += max(0, samples-c.Samples) * f.NFE
		}
	}
	f.Progress.Begin(part, share, evaluations)
	for _, c := range measured {
		if err := f.draw(ctx, c, samples); err != nil {
			return err
		}
	}
	rank(ranked)
	return nil
}

// rank sorts candidates: those measured on more samples first, and among these the best first.
func rank(all []*Candidate) {
	slices.SortStableFunc(all, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.score(), b.score()))
	})
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
