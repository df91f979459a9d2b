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
	// fineSteps are those of the reference, by iPNDM-4.
	fineSteps = 40
	// leastLatents is the least number of trajectories to fit to, as many to choose the ridge, and as many to judge.
	leastLatents = 6
	mostLatents  = 256
	// plainAgain is the number of plain samplers that are measured on the latents of the ridge too.
	plainAgain = 4
	// pairedFits is the number of levels that coefficients are fitted on, in bands and with one set each: those that suit
	// the trajectories, and those of the best plain sampler.
	pairedFits = 2
	// defaultBudget takes SDXL three minutes.
	defaultBudget = 4000
	// keptNumbers bounds the states of the reference that are kept.
	keptNumbers = 1 << 28
)

// PairedSettings say what Paired searches among.
type PairedSettings struct {
	NFE     int
	Solvers []string // those by coordinate are left out
	Budget  int      // evaluations, at most; 0: defaultBudget, or the least that will do
	Seed    uint64
	G0, T   float64 // variances between which the network is sampled
	// Times are noise levels at evenly spaced times of the network's own, falling, for plain samplers; nil for none.
	Times []float64
	// Label returns the label of latent i, which has a seed; −1 for none.
	Label func(i int, seed uint64) int32
	// Learn has the budget, if it is 0, suffice for a sampler that is learned through the network, too. Other budgets do
	// so if they suffice.
	Learn bool
	// Planned, which may be nil, takes the most evaluations that there will be, before the first.
	Planned func(evaluations int)
	// Progress may be nil.
	Progress *Progress
}

// pairedSearch is one search without images.
type pairedSearch struct {
	PairedSettings
	network sampler.Ensemble
	path    *schedule.Schedule // that all samplers follow, to the last level
	latents int                // to fit to; as many choose the ridge, and as many judge
	learns  bool
	fine    []float64       // noise levels of the reference, falling
	states  *sampler.States // of the reference, at every node
	known   *trajectories
	power   float64 // mean of its samples' sums of squares
}

// Paired returns the sampler from noise whose samples are closest to the network's own converged samples from the same
// latents: the plain solvers on several levels, coefficients fitted to the network's trajectories, and levels and
// coefficients learned through the network. Distances are squared errors, a geometric mean over the latents, over the
// mean square of the samples. The first of the tries is chosen if its gain over the best plain sampler is certain, on
// latents that nothing was chosen by.
func Paired(ctx context.Context, network sampler.Ensemble, set PairedSettings) (*FewResult, error) {
	if set.Progress == nil {
		set.Progress = NewProgress(nil)
	}
	set.Solvers = slices.DeleteFunc(slices.Clone(set.Solvers), ByCoordinate)
	f := &pairedSearch{PairedSettings: set, network: network}
	var err error
	if f.path, err = pathToZero(f.T, f.G0); err != nil {
		return nil, err
	}
	plain, err := f.plain()
	if err != nil {
		return nil, err
	}
	if err := f.spend(len(plain)); err != nil {
		return nil, err
	}
	if err := f.reference(ctx); err != nil {
		return nil, err
	}
	found := &FewResult{Held: f.latents}
	all, err := f.race(ctx, plain)
	if err := found.rank(all, err); err != nil || found.Stopped {
		return found, err
	}
	return found, found.unlessStopped(f.judge(ctx, found))
}

// pathToZero returns EDM's schedule up to T, with the last level that all samplers end at.
func pathToZero(T, g0 float64) (*schedule.Schedule, error) {
	path, err := schedule.EDM(T, g0)
	if err == nil && g0 != schedule.DefaultG0 {
		path, err = path.ToZero()
	}
	return path, err
}

// spend chooses how many latents there are.
func (f *pairedSearch) spend(plain int) error {
	each := 3*fineSteps + f.NFE*(plain+plainAgain+4*pairedFits*2+2) + 2*(f.NFE-1)
	learning := learnTrajectories * learnEvaluations(f.NFE, learnStarts)
	switch {
	case f.Budget == 0 && f.Learn:
		f.Budget = learnTrajectories*each + learning
	case f.Budget == 0:
		f.Budget = max(defaultBudget, leastLatents*each)
	}
	if f.learns = f.Budget >= learnTrajectories*each+learning; !f.learns {
		learning = 0
	}
	if f.latents = min((f.Budget-learning)/each, mostLatents); f.latents < leastLatents {
		return &BudgetError{f.Budget, leastLatents * each}
	}
	if f.Planned != nil {
		f.Planned(f.latents*each + learning)
	}
	return nil
}

// lastLevel is where all samplers end. It is not 0, so that solvers keep their order in the last step.
var lastLevel = math.Sqrt(schedule.DefaultG0)

// rule returns the noise levels of n steps, by EDM's rule of an exponent to the lowest level, in whose place is the
// last.
func (f *pairedSearch) rule(rho float64, n int) []float64 {
	return levelsBetween(math.Sqrt(f.T), lowestOf(f.G0), rho, n)
}

// levelsBetween returns the noise levels of n steps by EDM's rule of an exponent. In the place of the lowest is the
// last.
func levelsBetween(highest, lowest, rho float64, n int) []float64 {
	high, low := math.Pow(highest, 1/rho), math.Pow(lowest, 1/rho)
	out := make([]float64, n+1)
	for i := range n {
		out[i] = math.Pow(high+(low-high)*float64(i)/float64(n), rho)
	}
	out[n] = lastLevel
	return out
}

// lowestOf returns the lowest level at which networks are evaluated, of a range.
func lowestOf(g0 float64) float64 { return max(schedule.DefaultSigmaMin, math.Sqrt(g0)) }

// levels returns the noise levels of plain samplers of n steps, by name.
func (f *pairedSearch) levels(n int) map[string][]float64 {
	even := make([]float64, n+1)
	for i := range n {
		even[i] = math.Sqrt(f.T) * math.Pow(lowestOf(f.G0)/math.Sqrt(f.T), float64(i)/float64(max(1, n-1)))
	}
	even[n] = lastLevel
	out := map[string][]float64{"polynomial": f.rule(7, n), "polynomial 3": f.rule(3, n), "log-snr": even}
	if m := len(f.Times) - 1; m >= n {
		at := make([]float64, n+1)
		for i := range n {
			at[i] = f.Times[i*m/n]
		}
		at[0], at[n] = math.Sqrt(f.T), lastLevel
		if n < 2 || at[1] < at[0] {
			out["times"] = at
		}
	}
	return out
}

// plain returns the plain samplers.
func (f *pairedSearch) plain() (out []*Candidate, err error) {
	for _, name := range f.Solvers {
		counted, err := solver.Settings{
			Solver: name, NFE: f.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial},
		}.Resolve()
		if err != nil {
			return nil, err
		}
		levels := f.levels(counted.Steps)
		for _, named := range slices.Sorted(maps.Keys(levels)) {
			set, err := solver.Settings{
				Solver: name, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: levels[named]},
			}.Resolve()
			if err != nil {
				return nil, err
			}
			out = append(out, &Candidate{Schedule: f.path, Settings: set, SigmaMax: math.Sqrt(f.T), Levels: named})
		}
	}
	return out, nil
}

// reference follows all latents to their converged samples.
func (f *pairedSearch) reference(ctx context.Context) error {
	f.fine = f.rule(7, fineSteps)
	plan, err := converged(f.path, f.fine)
	if err != nil {
		return err
	}
	all := 3 * f.latents
	every := 1
	h, w, c := f.network.Shape()
	for fineSteps%every != 0 || fineSteps/every*all > keptNumbers/(h*w*c) && every < fineSteps {
		every++
	}
	f.states = &sampler.States{Every: every}
	power, products := &sampler.Errors{}, &sampler.Products{Stages: fineSteps}
	f.Progress.Begin("reference", 400, all*fineSteps)
	if err := f.network.Follow(ctx, f.trajectories(plan, 0, all), f.states, products, power); err != nil {
		return err
	}
	for _, v := range power.Squares {
		f.power += v / float64(all)
	}
	if !(f.power > 0) || math.IsInf(f.power, 1) {
		return ErrNotFinite
	}
	f.known = trajectoriesOf(f.fine, products, all*h*w*c)
	return nil
}

// converged returns the plan of samples that are converged, on fineSteps levels.
func converged(path *schedule.Schedule, fine []float64) (*solver.Plan, error) {
	return solver.New(solver.Settings{
		Solver: "ipndm", Warmup: solver.WarmupHeun, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: fine},
	}, path, 0)
}

// trajectories returns n latents from the first on along a plan.
func (f *pairedSearch) trajectories(p *solver.Plan, first, n int) sampler.Trajectories {
	t := sampler.Trajectories{
		Plan: p, Seed: firstSeed(f.Seed) + uint64(first), Labels: make([]int32, n), Progress: f.Progress.Add,
	}
	for i := range t.Labels {
		t.Labels[i] = f.Label(first+i, t.Seed+uint64(i))
	}
	return t
}

// race measures the plain samplers and fits around their levels. It returns all, the best first.
func (f *pairedSearch) race(ctx context.Context, plain []*Candidate) (all []*Candidate, err error) {
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
	best, err := solver.New(all[0].Settings, all[0].Schedule, 0)
	if err != nil {
		return all, err
	}
	around := [pairedFits][]int{f.known.nodes(f.NFE, f.states.Every), f.snapped(best)}
	for i, levels := range []string{"trajectories", all[0].Levels} {
		for _, isotropic := range []bool{true, false} {
			if around[i] == nil {
				continue
			}
			fitted, err := f.fit(ctx, around[i], levels, isotropic)
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
	if f.learns {
		found, err := f.learn(ctx)
		if errors.Is(err, ErrNotFinite) {
			return all, nil
		}
		if err == nil {
			err = f.measure(ctx, found, 2*f.latents)
		}
		if err != nil {
			return all, err
		}
		all = append(all, found)
	}
	return all, nil
}

// learn returns the sampler whose levels and coefficients are learned.
func (f *pairedSearch) learn(ctx context.Context) (*Candidate, error) {
	rows := learnTrajectories
	f.Progress.Begin("learn", 500, rows*learnEvaluations(f.NFE, learnStarts))
	l := &learner{
		ctx: ctx, network: f.network, from: f.trajectories(nil, 0, 2*rows), rows: rows, schedule: f.path,
		lowest: lowestOf(f.G0), columns: sampler.Columns{Target: f.states, At: fineSteps/f.states.Every - 1},
	}
	found, err := l.learn(l.starts(f.known, f.fine, f.NFE)...)
	if err != nil {
		return nil, err
	}
	none, err := f.noStatistics()
	if err != nil {
		return nil, err
	}
	coefficients, err := l.fitted(found, none)
	if err != nil {
		return nil, err
	}
	return f.candidate(coefficients, none, "learned", nil)
}

// candidate returns the sampler of coefficients.
func (f *pairedSearch) candidate(
	coefficients *solver.Fitted, of *local.Statistics, levels string, fit *fitter,
) (*Candidate, error) {
	set, err := solver.Settings{
		Solver: solver.FittedName, Steps: len(coefficients.Alpha), Statistics: of, Fitted: coefficients,
	}.Resolve()
	return &Candidate{Schedule: f.path, Settings: set, SigmaMax: math.Sqrt(f.T), Levels: levels, fit: fit}, err
}

// noStatistics returns those of a denoiser of which nothing is known, whose parts are bands of frequencies.
func (f *pairedSearch) noStatistics() (*local.Statistics, error) {
	bands := local.BandsOf(f.network.Shape())
	row := local.Row{Variance: slices.Repeat([]float64{1}, bands.Parts())}
	row.Gain = [][]float64{make([]float64, bands.Parts()), make([]float64, bands.Parts())}
	return local.New(bands, nil, []float64{f.fine[fineSteps-1] / 2, f.fine[0]}, []local.Row{row})
}

// fit returns the sampler whose coefficients are fitted between nodes of the reference.
func (f *pairedSearch) fit(ctx context.Context, nodes []int, levels string, isotropic bool) (*Candidate, error) {
	none, err := f.noStatistics()
	if err != nil {
		return nil, err
	}
	fit := &fitter{
		ctx: ctx, network: f.network, from: f.trajectories(nil, 0, 2*f.latents), samples: f.latents, schedule: f.path,
		statistics: none, isotropic: isotropic, states: f.states, report: func(int, int) {},
	}
	var sigma []float64
	for _, k := range nodes {
		sigma = append(sigma, f.fine[k])
		if k > 0 {
			fit.at = append(fit.at, k/f.states.Every-1)
		}
	}
	coefficients, _, err := fit.all(solver.Settings{
		Solver: solver.LocalName, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: sigma}, Statistics: none,
	})
	if err != nil {
		return nil, err
	}
	return f.candidate(coefficients, none, levels, fit)
}

// snapped returns the kept nodes of the reference that are nearest to the levels of a plan, one for each.
func (f *pairedSearch) snapped(p *solver.Plan) []int {
	out := []int{0}
	steps := p.Steps()
	for i := 1; i < steps; i++ {
		sigma, best := f.path.Sigma(0, p.T[i]), -1
		for k := out[i-1] + f.states.Every; k <= fineSteps-(steps-i)*f.states.Every; k += f.states.Every {
			if best < 0 || math.Abs(math.Log(f.fine[k]/sigma)) < math.Abs(math.Log(f.fine[best]/sigma)) {
				best = k
			}
		}
		if best < 0 {
			return nil
		}
		out = append(out, best)
	}
	if steps*f.states.Every > fineSteps {
		return nil
	}
	return append(out, fineSteps)
}

// squares returns the squared errors of a candidate's samples beside the reference.
func (f *pairedSearch) squares(ctx context.Context, c *Candidate, first, n int) ([]float64, error) {
	plan, err := solver.New(c.Settings, c.Schedule, 0)
	if err != nil {
		return nil, err
	}
	errs := &sampler.Errors{States: f.states, At: fineSteps/f.states.Every - 1, First: first}
	err = f.network.Follow(ctx, f.trajectories(plan, first, n), errs)
	return errs.Squares, err
}

// distance returns the geometric mean of squared errors, over the mean of the samples' squares.
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

// judge chooses between the best and its rival, on latents that nothing was chosen by.
func (f *pairedSearch) judge(ctx context.Context, found *FewResult) error {
	f.Progress.Begin("held back", 100, 2*f.latents*f.NFE)
	best, rival := found.Tries[0], found.Against
	against, err := f.held(ctx, rival)
	if found.Chosen = rival; err != nil || best == rival {
		return err
	}
	squares, err := f.held(ctx, best)
	if err != nil {
		return err
	}
	for i, v := range squares {
		squares[i] = math.Log(v / against[i])
	}
	if found.Gain.Change, found.Gain.Stderr = passes.MeanStderr(squares); found.Gain.Certain() {
		found.Chosen = best
		return best.completeTails()
	}
	return nil
}

// held measures a candidate on the latents held back, and returns its squared errors there.
func (f *pairedSearch) held(ctx context.Context, c *Candidate) ([]float64, error) {
	squares, err := f.squares(ctx, c, 2*f.latents, f.latents)
	if err != nil {
		return nil, err
	}
	if c.Held = f.distance(squares); math.IsInf(c.Held.score(), 1) {
		return nil, ErrNotFinite
	}
	return squares, nil
}
