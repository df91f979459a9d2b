package search

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/passes"
)

const (
	// leastLatents is the least number of trajectories to fit to. As many choose the ridge, and as many are held out.
	leastLatents = 6
	mostLatents  = 256
	// firstLatents are at most those of every plain sampler in the first round.
	firstLatents = 8
	// mostPlain and mostFinal are the candidates of the second round, of plain samplers, and of the last, of all kinds,
	// apart from the best of each family.
	mostPlain, mostFinal = 8, 4
	// pairedFits is the number of lists of levels on which coefficients are fitted, in bands and with one set each: those
	// that suit the trajectories from the highest level, and from the best.
	pairedFits = 2
	// scaledHalvings is the number of times that the highest level is halved for starts from noise of a fitted deviation,
	// and pairedAnalytical the number of levels of starts with an analytical first step.
	scaledHalvings, pairedAnalytical = 4, 2
	// defaultBudget takes SDXL three minutes. A network that makes more evaluations in defaultSeconds gets these, up to
	// those of usualLatents.
	defaultBudget, defaultSeconds = 4000, 60
	usualLatents                  = 64
)

// pairedSearch is one search without images.
type pairedSearch struct {
	searcher
	ctx       context.Context
	path      *schedule.Schedule // that all samplers follow, to the last level
	latents   int                // to fit to; as many choose the ridge, and as many judge
	reference *reference
	power     float64 // mean of its samples' sums of squares
}

// Paired returns the sampler from noise whose samples are closest to the network's own converged samples from the same
// latents. It tries plain solvers on several levels, coefficients fitted to the network's trajectories, and levels and
// coefficients learned through the network. Distances are squared errors over the mean square of the samples: see
// distance. Of the best of each family the simplest is chosen unless another is clearly better: see clearGain.
// Errors are *BudgetError, ErrNotFinite, or those of network.
func Paired(ctx context.Context, network sampler.Ensemble, set Settings) (*FewResult, error) {
	f := &pairedSearch{searcher: newSearcher(network, set), ctx: ctx}
	var err error
	if f.path, err = pathToZero(f.T, f.G0); err != nil {
		return nil, err
	}
	if f.Budget == 0 {
		if err := f.pace(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.spend(); err != nil {
		return nil, err
	}
	if err := f.converge(ctx); err != nil {
		return nil, err
	}
	found := &FewResult{Paired: true, HeldOut: f.latents}
	all, err := f.rankCandidates(ctx)
	if err = found.rank(all, err); err != nil {
		return found, err
	}
	if !found.Stopped {
		err = found.unlessStopped(f.measureHeldOut(found, contenders(found.Tries, 1, f)))
	}
	if err != nil {
		return found, err
	}
	return found, found.setTails()
}

// plainCount is the most plain samplers.
func (f *pairedSearch) plainCount() int {
	return len(f.Solvers) * (len(f.levels(f.NFE)) + 1 + scaledHalvings*len(rules) + 1 + pairedAnalytical)
}

// spend sets the number of latents that the budget allows, and whether it suffices to learn.
func (f *pairedSearch) spend() error {
	n, most := f.NFE, f.mostLatents()
	learned := func(rounds int) int { return learnRows * learnEvaluations(n, rounds, f.LearnGuidance) }
	usual := min(most, usualLatents)
	if f.Budget == 0 {
		all := f.cost(usual, true) + learnStarts*learned(learnRounds)
		f.Budget = max(defaultBudget, f.cost(leastLatents, false), min(f.within, all))
		if f.Learn != nil && *f.Learn {
			f.Budget = max(f.Budget, all)
		}
	}
	if least := f.cost(leastLatents, false); f.Budget < least {
		return &BudgetError{f.Budget, least}
	}
	wanted := f.Levels == nil && (f.Learn == nil || *f.Learn)
	learn := wanted && f.Budget >= f.cost(min(usual, learnRows), true)+learned(leastRounds)
	reserved := 0
	if learn {
		most, reserved = usual, learned(leastRounds)
	}
	f.latents = most
	for f.cost(f.latents, learn)+reserved > f.Budget {
		f.latents--
	}
	if learn {
		f.allowed = min(f.Budget-f.cost(f.latents, true), learnStarts*learned(learnRounds))
	}
	f.announce(f.cost(f.latents, learn) * 85 / 100) // candidates leave races early
	return nil
}

// mostLatents is the largest number of latents, so that there are two nodes for each step.
func (f *pairedSearch) mostLatents() int {
	h, w, c := f.network.Shape()
	return min(mostLatents, max(leastLatents, keptNumbers/(3*h*w*c*2*f.NFE)))
}

// cost returns the most evaluations of a search with a number of latents, except to learn.
func (f *pairedSearch) cost(latents int, learn bool) int {
	// The plans that follow so many latents: plain ones, fits in two parts, on twice as many and then measured, finalists,
	// and those that are judged. The best of families add to the best of all.
	plans := (mostPlain + 1) + 3*2*pairedFits + (mostFinal + 2) + 3
	if learn {
		plans += learnStarts + 2
	}
	first := firstRound(latents) * f.plainCount()
	return f.NFE*(first+plans*latents) + (3*fineSteps+4*(f.NFE-1))*latents
}

// firstRound returns the latents of every plain sampler in the first round.
func firstRound(latents int) int { return max(2, min(firstLatents, latents/3)) }

// levels returns lists of noise levels of n steps for plain samplers, by name.
func (f *pairedSearch) levels(n int) map[string][]float64 {
	highest, lowest := math.Sqrt(f.T), lowestOf(f.G0)
	even := make([]float64, n+1)
	for i := range n {
		even[i] = highest * math.Pow(lowest/highest, float64(i)/float64(max(1, n-1)))
	}
	even[n] = lastLevel
	out := map[string][]float64{"log-snr": even}
	for _, rule := range rules {
		out[rule.levels] = levelsBetween(highest, lowest, rule.rho, n)
	}
	if m := len(f.Times) - 1; m >= n {
		at := make([]float64, n+1)
		for i := range n {
			at[i] = f.Times[i*m/n]
		}
		at[0], at[n] = highest, lastLevel
		if n < 2 || at[1] < at[0] {
			out["times"] = at
		}
	}
	return out
}

// plainCandidates returns each solver on each of these lists, on levels that suit the trajectories, from noise of a
// fitted deviation at lower levels, and with an analytical first step.
func (f *pairedSearch) plainCandidates() (out []*Candidate, err error) {
	for _, name := range f.Solvers {
		counted, err := solver.Settings{
			Solver: name, NFE: f.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial},
		}.Resolve()
		if err != nil {
			return nil, err
		}
		n := counted.Steps
		on := func(named string, levels []float64) (*Candidate, error) {
			return plainCandidate(solver.Settings{
				Solver: name, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: levels},
			}, f.path, named)
		}
		add := func(named string, levels []float64, deviation float64) error {
			c, err := on(named, levels)
			if err != nil {
				return err
			}
			if deviation != 0 {
				c.Plan.Init, c.Deviation = []float64{deviation}, deviation
			}
			out = append(out, c)
			return nil
		}
		lists := f.levels(n)
		for _, named := range slices.Sorted(maps.Keys(lists)) {
			if levels := f.known(lists[named]); levels != nil {
				if err := add(named, levels, 0); err != nil {
					return nil, err
				}
			}
		}
		for _, lower := range []bool{false, true} {
			if nodes := f.reference.products.nodes(n, 1, f.first(lower)); nodes != nil && (!lower || nodes[0] > 0) {
				levels, deviation := f.reference.levels(nodes)
				if err := add("trajectories", levels, deviation); err != nil {
					return nil, err
				}
			}
		}
		for halving := range scaledHalvings {
			first := f.reference.nearest(f.reference.fine[0] / float64(int(2)<<halving))
			for _, rule := range rules {
				levels := f.known(levelsBetween(f.reference.fine[first], lowestOf(f.G0), rule.rho, n))
				if first == 0 || first > fineSteps-n || levels == nil {
					continue
				}
				if err := add(rule.levels, levels, f.reference.products.deviation(first)); err != nil {
					return nil, err
				}
			}
		}
		h, w, channels := f.network.Shape()
		for halving := range pairedAnalytical {
			rule := rules[len(rules)-1]
			levels := f.known(levelsBetween(f.reference.fine[0]/float64(int(1)<<halving), lowestOf(f.G0), rule.rho, n+1))
			if levels == nil || levels[0] < 2*lowestOf(f.G0) {
				continue
			}
			c, err := on(rule.levels, levels)
			if err == nil {
				c, err = c.analytical(f.power / float64(h*w*channels))
			}
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

// first returns the cost of a start at a node: of one from noise of a fitted deviation at any, or from the highest
// level alone.
func (f *pairedSearch) first(lower bool) func(node int) float64 {
	if lower {
		return f.reference.products.startError
	}
	return startingAt(0)
}

// converge sets the reference: all latents followed to their converged samples.
func (f *pairedSearch) converge(ctx context.Context) error {
	all := 3 * f.latents
	f.Progress.Begin("reference", 400, all*fineSteps)
	power := &sampler.Errors{}
	var err error
	f.reference, err = newReference(ctx, f.network, f.path, f.G0, f.Levels, f.trajectories(nil, 0, all), power)
	if err != nil {
		return err
	}
	for _, v := range power.Squares {
		f.power += v / float64(all)
	}
	if !(f.power > 0) || math.IsInf(f.power, 1) {
		return ErrNotFinite
	}
	return nil
}

// rankCandidates races the plain samplers, fits around their levels, learns, and races the best of all. It returns all
// candidates ranked, even with an error.
func (f *pairedSearch) rankCandidates(ctx context.Context) (all []*Candidate, err error) {
	defer func() { rank(all) }()
	if all, err = f.plainCandidates(); err != nil {
		return nil, err
	}
	first := firstRound(f.latents)
	f.Progress.Begin("plain", 300, len(all)*first*f.NFE+mostPlain*(f.latents-first)*f.NFE)
	left, err := race(all, []round{{first, len(all)}, {f.latents, mostPlain}}, f)
	if rank(all); err != nil {
		return all, err
	}
	f.Progress.Begin("fit", 200, pairedFits*2*3*f.latents*f.NFE)
	h, w, channels := f.network.Shape()
	bands := &solver.Coordinates{Bands: local.BandsOf(h, w, channels), Axes: [][]float64{nil}}
	for _, lower := range []bool{false, true} {
		nodes := f.reference.nodes(f.NFE, f.first(lower))
		if nodes == nil || lower && nodes[0] == 0 {
			continue
		}
		for _, parts := range []*solver.Coordinates{nil, bands} {
			fitted, err := f.fit(ctx, nodes, "trajectories", parts)
			if errors.Is(err, ErrNotFinite) {
				continue
			}
			if err != nil {
				return all, err
			}
			if err := f.measure(fitted, f.latents); err != nil {
				return all, err
			}
			all, left = append(all, fitted), append(left, fitted)
		}
	}
	if rank(left); f.allowed > 0 {
		learned, err := f.learn(left, 500, func(c *Candidate) error { return f.measure(c, f.latents) })
		all, left = append(all, learned...), append(left, learned...)
		if rank(left); err != nil {
			return all, err
		}
	}
	_, err = race(survivors(left, mostFinal, f), []round{{2 * f.latents, mostFinal}}, f)
	return all, err
}

// fit returns the sampler with coefficients fitted between nodes of the reference, in parts.
func (f *pairedSearch) fit(ctx context.Context, nodes []int, levels string, parts *solver.Coordinates,
) (*Candidate, error) {
	fit, err := f.reference.fit(ctx, f.latents, nodes, solver.Local{Order: 3, Coordinates: parts})
	if err != nil {
		return nil, err
	}
	return fit.candidate(levels)
}

// squares returns the squared errors of a candidate's samples compared with the reference.
func (f *pairedSearch) squares(ctx context.Context, c *Candidate, first, n int) ([]float64, error) {
	errs := &sampler.Errors{States: f.reference.states, At: fineSteps/f.reference.states.Every - 1, First: first}
	err := f.network.Follow(ctx, f.trajectories(c.Plan, first, n), errs)
	return errs.Squares, err
}

// distance returns the score of squared errors over the mean square of the samples: the geometric mean of their mean
// and their own geometric mean. The former alone is decided by the few latents of large images, and the latter lets a
// sampler fail at these.
func (f *pairedSearch) distance(squares []float64) Distances {
	var sum, logs float64
	for _, v := range squares {
		sum, logs = sum+v, logs+math.Log(v)
	}
	n := float64(len(squares))
	return Distances{math.Sqrt(sum/n*math.Exp(logs/n)) / f.power}
}

// measure implements [judge].
func (f *pairedSearch) measure(c *Candidate, n int) error {
	if n <= c.Samples {
		return nil
	}
	squares, err := f.squares(f.ctx, c, c.Samples, n-c.Samples)
	if err != nil {
		return err
	}
	c.squares, c.Samples = append(c.squares, squares...), n
	c.Distances = f.distance(c.squares)
	return nil
}

// gain implements [judge].
func (f *pairedSearch) gain(c, other *Candidate) Gain { return pairedGain(c.squares, other.squares) }

// pairedGain returns the ratio of the scores of squared errors on the latents that both have. Its error is that of the
// sum of the influences of the latents.
func pairedGain(squares, others []float64) (g Gain) {
	n := min(len(squares), len(others))
	ofMean, influences := make([]float64, n), make([]float64, n)
	mean, other := stat.Mean(squares[:n], nil), stat.Mean(others[:n], nil)
	for i := range influences {
		ofMean[i] = squares[i]/mean - others[i]/other
		influences[i] = (ofMean[i] + math.Log(squares[i]/others[i])) / 2
	}
	g.Mean = &Gain{Change: math.Log(mean / other)}
	_, g.Mean.Stderr = passes.MeanStderr(ofMean)
	g.Change, g.Stderr = passes.MeanStderr(influences)
	g.Change += g.Mean.Change / 2
	return g
}

// measureHeldOut chooses on held-out latents.
func (f *pairedSearch) measureHeldOut(found *FewResult, contenders []*Candidate) error {
	f.Progress.Begin("held back", 100, len(contenders)*f.latents*f.NFE)
	held := map[*Candidate][]float64{}
	gain := func(c, other *Candidate) Gain { return pairedGain(held[c], held[other]) }
	return found.choose(contenders, func(c *Candidate) (err error) {
		held[c], err = f.heldOutSquares(f.ctx, c)
		return err
	}, gain, func(c, other *Candidate) bool { return clearGain(f.gain(c, other), gain(c, other)) })
}

// clearGain reports whether a gain is clear on held-out latents; or else clear in the race, by confidence, and no clear
// loss on these. One large error among few latents may hide a gain. In the race fits have seen half of the latents.
func clearGain(race, held Gain) bool {
	return held.Clear() || race.Change+confidence*race.Stderr < 0 && held.Change <= held.Stderr
}

// heldOutSquares sets the held-out distance of a candidate. It returns its squared errors there.
func (f *pairedSearch) heldOutSquares(ctx context.Context, c *Candidate) ([]float64, error) {
	squares, err := f.squares(ctx, c, 2*f.latents, f.latents)
	if err != nil {
		return nil, err
	}
	if c.HeldOut = f.distance(squares); math.IsInf(c.HeldOut.score(), 1) {
		return nil, ErrNotFinite
	}
	return squares, nil
}
