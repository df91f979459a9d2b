package search

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

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
	// plainAgain is the number of plain samplers that are also measured on the latents of the ridge.
	plainAgain = 4
	// pairedFits is the number of lists of levels on which coefficients are fitted, in bands and with one set each: those
	// that suit the trajectories, and those of the best plain sampler.
	pairedFits = 2
	// defaultBudget takes SDXL three minutes.
	defaultBudget = 4000
)

// pairedSearch is one search without images.
type pairedSearch struct {
	searcher
	path      *schedule.Schedule // that all samplers follow, to the last level
	latents   int                // to fit to; as many choose the ridge, and as many judge
	learns    bool
	reference *reference
	power     float64 // mean of its samples' sums of squares
}

// Paired returns the sampler from noise whose samples are closest to the network's own converged samples from the same
// latents. It tries plain solvers on several levels, coefficients fitted to the network's trajectories, and levels and
// coefficients learned through the network. Distances are squared errors, a geometric mean over the latents, divided by
// the mean square of the samples. The best is chosen if its gain over the best plain sampler is clear on held-out
// latents. Errors are *BudgetError, ErrNotFinite, or those of network.
func Paired(ctx context.Context, network sampler.Ensemble, set Settings) (*FewResult, error) {
	f := &pairedSearch{searcher: newSearcher(network, set)}
	var err error
	if f.path, err = pathToZero(f.T, f.G0); err != nil {
		return nil, err
	}
	plain, err := f.plainCandidates()
	if err != nil {
		return nil, err
	}
	if err := f.spend(len(plain)); err != nil {
		return nil, err
	}
	if err := f.converge(ctx); err != nil {
		return nil, err
	}
	found := &FewResult{Paired: true, HeldOut: f.latents}
	all, err := f.rankCandidates(ctx, plain)
	if err = found.rank(all, err); err != nil {
		return found, err
	}
	if !found.Stopped {
		err = found.unlessStopped(f.measureHeldOut(ctx, found))
	}
	if err != nil {
		return found, err
	}
	return found, found.setTails()
}

// spend sets the number of latents that the budget allows.
func (f *pairedSearch) spend(plain int) error {
	each := 3*fineSteps + f.NFE*(plain+plainAgain+4*pairedFits*2+2) + 4*(f.NFE-1)
	learning, eachThen := learnTrajectories*learnEvaluations(f.NFE), each+4*f.NFE
	switch {
	case f.Budget == 0 && f.Learn:
		f.Budget = learnTrajectories*eachThen + learning
	case f.Budget == 0:
		f.Budget = max(defaultBudget, leastLatents*each)
	}
	if f.learns = f.Levels == nil && f.Budget >= learnTrajectories*eachThen+learning; f.learns {
		each = eachThen
	} else {
		learning = 0
	}
	h, w, c := f.network.Shape()
	kept := max(leastLatents, keptNumbers/(3*h*w*c*2*f.NFE)) // so that there are two nodes for each step
	if f.latents = min((f.Budget-learning)/each, mostLatents, kept); f.latents < leastLatents {
		return &BudgetError{f.Budget, leastLatents * each}
	}
	if f.Planned != nil {
		f.Planned(f.latents*each + learning)
	}
	return nil
}

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
	for named, levels := range out {
		if out[named] = f.known(levels); out[named] == nil {
			delete(out, named)
		}
	}
	return out
}

// plainCandidates returns each solver on each of these lists.
func (f *pairedSearch) plainCandidates() (out []*Candidate, err error) {
	for _, name := range f.Solvers {
		counted, err := solver.Settings{
			Solver: name, NFE: f.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial},
		}.Resolve()
		if err != nil {
			return nil, err
		}
		levels := f.levels(counted.Steps)
		for _, named := range slices.Sorted(maps.Keys(levels)) {
			c, err := plainCandidate(solver.Settings{
				Solver: name, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: levels[named]},
			}, f.path, named)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
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

// rankCandidates measures the plain samplers, fits around their levels, and learns. It returns all candidates ranked,
// even with an error.
func (f *pairedSearch) rankCandidates(ctx context.Context, plain []*Candidate) (all []*Candidate, err error) {
	defer func() { rank(all) }()
	f.Progress.Begin("plain", 300, (len(plain)+plainAgain)*f.latents*f.NFE)
	for _, c := range plain {
		if err := f.measure(ctx, c, f.latents); err != nil {
			return all, err
		}
		all = append(all, c)
	}
	rank(all)
	for _, c := range all[:min(plainAgain, len(all))] {
		if err := f.measure(ctx, c, 2*f.latents); err != nil {
			return all, err
		}
	}
	rank(all)
	f.Progress.Begin("fit", 200, pairedFits*2*4*f.latents*f.NFE)
	around := [pairedFits][]int{f.reference.nodes(f.NFE), f.reference.nearestNodes(all[0].Plan)}
	h, w, channels := f.network.Shape()
	bands := &solver.Coordinates{Bands: local.BandsOf(h, w, channels), Axes: [][]float64{nil}}
	for i, levels := range []string{"trajectories", all[0].Levels} {
		for _, parts := range []*solver.Coordinates{nil, bands} {
			if around[i] == nil {
				continue
			}
			fitted, err := f.fit(ctx, around[i], levels, parts)
			if errors.Is(err, ErrNotFinite) {
				continue
			}
			if err != nil {
				return all, err
			}
			if err := f.measure(ctx, fitted, 2*f.latents); err != nil {
				return all, err
			}
			all = append(all, fitted)
		}
	}
	if rank(all); !f.learns {
		return all, nil
	}
	return f.addLearned(all, 500, func(c *Candidate) error { return f.measure(ctx, c, 2*f.latents) })
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

// distance returns the geometric mean of squared errors over the mean square of the samples.
func (f *pairedSearch) distance(squares []float64) Distances {
	var sum float64
	for _, v := range squares {
		sum += math.Log(v)
	}
	return Distances{math.Exp(sum/float64(len(squares))) / f.power}
}

// measure measures a candidate on the latents up to n.
func (f *pairedSearch) measure(ctx context.Context, c *Candidate, n int) error {
	squares, err := f.squares(ctx, c, c.Samples, n-c.Samples)
	if err != nil {
		return err
	}
	c.squares, c.Samples = append(c.squares, squares...), n
	c.Distances = f.distance(c.squares)
	return nil
}

// measureHeldOut chooses on held-out latents.
func (f *pairedSearch) measureHeldOut(ctx context.Context, found *FewResult) error {
	f.Progress.Begin("held back", 100, 2*f.latents*f.NFE)
	return found.choose(func(c *Candidate) ([]float64, error) { return f.heldOutSquares(ctx, c) },
		func(rival, best []float64) (change, stderr float64) {
			for i, v := range best {
				best[i] = math.Log(v / rival[i])
			}
			return passes.MeanStderr(best)
		})
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
