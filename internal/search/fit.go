package search

import (
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// substeps is how many steps the converged trajectories take for each of the sampler's.
const substeps = 8

// ridges are the weights tried of what holds coefficients near those of the solver local, the largest first.
var ridges = []float64{10, 1, 0.1, 1e-2, 1e-3}

// MaxFitNumbers bounds the numbers that a fit keeps.
const MaxFitNumbers = 1 << 28

// FitSettings say what Fit fits.
type FitSettings struct {
	Solver  solver.Settings // of the solver local, without statistics
	Samples int             // trajectories to fit to; as many choose the ridge, and as many judge
	Seed    uint64
	// Isotropic has one set of coefficients for all coordinates.
	Isotropic bool
	Start     *start.Start // that sampling starts from; nil: from noise alone
	// Label returns the label of trajectory i, which has a seed; −1 for none.
	Label func(i int, seed uint64) int32
	// Report is told that done of total evaluations are done.
	Report func(done, total int)
}

// FitErrors are root mean squares by which samples miss the converged ones, on latents that no fit has seen.
type FitErrors struct{ Local, Fitted float64 }

// Fit fits coefficients to a network's own trajectories along a schedule of one subspace that all classes share, in the
// coordinates of its statistics.
func Fit(
	ctx context.Context, network sampler.Ensemble, s *schedule.Schedule, statistics *local.Statistics, set FitSettings,
) (*solver.Fitted, *FitErrors, error) {
	f := &fitter{
		ctx: ctx, network: network, samples: set.Samples, schedule: s, statistics: statistics, isotropic: set.Isotropic,
		from:   sampler.Trajectories{Seed: firstSeed(set.Seed), Labels: make([]int32, 3*set.Samples), Start: set.Start},
		report: set.Report,
	}
	for i := range f.from.Labels {
		f.from.Labels[i] = set.Label(i, f.from.Seed+uint64(i))
	}
	if set.Solver.Statistics = statistics; f.isotropic {
		set.Solver.Statistics = statistics.WithoutGain()
	}
	return f.all(set.Solver)
}

// fitter is one fit: the first of its samples are fitted to, as many choose the ridge, and those after them, if there
// are any, judge.
type fitter struct {
	ctx         context.Context
	network     sampler.Ensemble
	from        sampler.Trajectories // without a plan
	schedule    *schedule.Schedule
	statistics  *local.Statistics
	samples     int
	isotropic   bool // one set of coefficients for all coordinates
	report      func(done, total int)
	done, total int
}

// all fits step after step, each from the states that the fitted steps before it lead to, and near the solver local
// of the settings.
func (f *fitter) all(set solver.Settings) (*solver.Fitted, *FitErrors, error) {
	base, err := solver.New(set, f.schedule, 0)
	if err != nil {
		return nil, nil, err
	}
	n := len(base.Stages)
	f.total = len(f.from.Labels) * (substeps*n + n*(n+1)/2 + 2*n)
	sigma := make([]float64, n+1)
	for i, t := range base.T {
		sigma[i] = f.schedule.Sigma(0, t)
	}
	target, err := f.converged(sigma)
	if err != nil {
		return nil, nil, err
	}
	plan := *base
	plan.Stages = slices.Clone(base.Stages)
	for i := range n {
		part := plan
		part.Stages, part.NFE = plan.Stages[:i+1], i+1
		states, evaluations, err := f.follow(&part)
		if err != nil {
			return nil, nil, err
		}
		st := plan.Stages[i]
		st.Alpha, st.Beta = f.step(st, states, evaluations, target[i])
		plan.Stages[i] = st
	}
	report := &FitErrors{}
	if len(f.from.Labels) > 2*f.samples {
		if report.Local, err = f.judge(base, target[n-1]); err != nil {
			return nil, nil, err
		}
		if report.Fitted, err = f.judge(&plan, target[n-1]); err != nil {
			return nil, nil, err
		}
	}
	out := &solver.Fitted{Sigma: sigma}
	for _, st := range plan.Stages {
		out.Alpha, out.Beta = append(out.Alpha, st.Alpha), append(out.Beta, st.Beta)
	}
	return out, report, nil
}

// converged returns the coordinates of converged trajectories at the nodes after the first, [node][f][sample].
func (f *fitter) converged(sigma []float64) ([][][]float64, error) {
	fine := []float64{sigma[0]}
	for i, s := range sigma[1:] {
		for k := 1; k <= substeps; k++ {
			fine = append(fine, sigma[i]*math.Pow(s/sigma[i], float64(k)/substeps))
		}
	}
	plan, err := solver.New(solver.Settings{
		Solver: "ipndm_v", Warmup: solver.WarmupHeun, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: fine},
	}, f.schedule, 0)
	if err != nil {
		return nil, err
	}
	states, _, err := f.follow(plan)
	if err != nil {
		return nil, err
	}
	var out [][][]float64
	for i := range sigma[1:] {
		out = append(out, states[(i+1)*substeps])
	}
	return out, nil
}

// follow returns the coordinates of the states at the nodes of a plan, the start first, and of its denoised images,
// each [f][sample].
func (f *fitter) follow(plan *solver.Plan) (states, denoised [][][]float64, err error) {
	t := f.from
	t.Plan, t.Progress = plan, func(evaluations int) {
		f.done += evaluations
		f.report(min(f.done, f.total), f.total)
	}
	var kept sampler.States
	if err := f.network.Follow(f.ctx, t, &kept); err != nil {
		return nil, nil, err
	}
	for _, x := range kept.X {
		states = append(states, f.coordinates(x))
	}
	for _, d := range kept.Denoised {
		denoised = append(denoised, f.coordinates(d))
	}
	return states, denoised, nil
}

// coordinates returns those of images, [f][sample].
func (f *fitter) coordinates(images []float32) [][]float64 {
	frequencies := f.statistics.Frequencies(0)
	size := frequencies.Size()
	out := make([][]float64, size)
	for i := range out {
		out[i] = make([]float64, len(images)/size)
	}
	x := make([]float64, size)
	for n := range len(images) / size {
		for i := range x {
			x[i] = float64(images[n*size+i])
		}
		frequencies.Forward(x, x)
		for i, v := range x {
			out[i][n] = v
		}
	}
	return out
}

// step returns the weights of a stage that lead from the states at its node to the target, of every coordinate its own
// unless the fit is isotropic, and with the ridge that errs least on the samples set aside.
func (f *fitter) step(st solver.Stage, states, evaluations [][][]float64, target [][]float64,
) (alpha []float64, beta [][]float64) {
	i := len(evaluations) - 1
	alpha, beta = make([]float64, len(st.Alpha)), make([][]float64, len(st.Alpha))
	least := math.Inf(1)
	for _, ridge := range append([]float64{math.Inf(1)}, ridges...) {
		a, b := make([]float64, len(alpha)), make([][]float64, len(alpha))
		var sum float64
		for _, group := range f.groups(len(a)) {
			first := group[0]
			near := append([]float64{st.Alpha[first], st.Beta[first][0]}, st.Beta[first][min(2, len(st.Beta[first])):]...)
			joined := func(coordinates [][]float64, from, to int) (all []float64) {
				for _, c := range group {
					all = append(all, coordinates[c][from:to]...)
				}
				return all
			}
			history := func(from, to int) [][]float64 {
				z := [][]float64{joined(states[i], from, to), joined(evaluations[i], from, to)}
				for k := 1; len(z) < len(near); k++ {
					z = append(z, joined(evaluations[i-k], from, to), joined(states[i-k], from, to))
				}
				return z
			}
			w := near
			if !math.IsInf(ridge, 1) {
				w = local.Fit(history(0, f.samples), joined(target, 0, f.samples), near, ridge)
			}
			for _, c := range group {
				a[c] = w[0]
				b[c] = append([]float64{w[1]}, make([]float64, len(st.Beta[c])-1)...)
				copy(b[c][min(2, len(b[c])):], w[2:])
			}
			heldBack := history(f.samples, 2*f.samples)
			for n, off := range joined(target, f.samples, 2*f.samples) {
				for k, v := range w {
					off -= v * heldBack[k][n]
				}
				sum += off * off
			}
		}
		if sum < least {
			least, alpha, beta = sum, a, b
		}
	}
	return alpha, beta
}

// groups returns the coordinates that share their weights: each stands alone, or all stand together.
func (f *fitter) groups(n int) [][]int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if f.isotropic {
		return [][]int{all}
	}
	return slices.Collect(slices.Chunk(all, 1))
}

// judge returns the root mean square by which a plan misses the converged samples that no fit has seen.
func (f *fitter) judge(plan *solver.Plan, target [][]float64) (float64, error) {
	states, _, err := f.follow(plan)
	if err != nil {
		return 0, err
	}
	var sum float64
	for c, row := range states[len(states)-1] {
		for n := 2 * f.samples; n < len(row); n++ {
			off := row[n] - target[c][n]
			sum += off * off
		}
	}
	return math.Sqrt(sum / float64(f.samples*len(target))), nil
}
