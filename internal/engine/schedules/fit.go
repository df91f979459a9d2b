package schedules

import (
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// substeps is how many steps the converged trajectories take for each of the sampler's.
const substeps = 8

// ridges are the weights tried of what holds coefficients near those of the solver local, the largest first.
var ridges = []float64{10, 1, 0.1, 1e-2, 1e-3}

// maxFitNumbers bounds the numbers that a fit keeps.
const maxFitNumbers = 1 << 28

// fit makes the schedule that carries coefficients fitted to a model's own trajectories.
func (k *Maker) fit(ctx context.Context, req api.FitSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	named, network, err := k.Catalog.ScheduleAndNetwork(req.Schedule, m)
	if err != nil {
		return nil, err
	}
	if named.Statistics == nil || named.Statistics.Rows() != 1 {
		return nil, api.Errorf(api.BadRequest, "The schedule %q must carry statistics that all classes share", named.Name).
			WithHint("Make one of kind geodesic with statistics, and without per_class.")
	}
	if err := checkMemory(3*req.Samples, network, 3*(req.NFE+1), maxFitNumbers); err != nil {
		return nil, err
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	defer m.Release()
	made := &newSchedule{parts: named.Parts}
	if made.origin, err = k.origin("", m); err != nil {
		return nil, err
	}
	made.origin.Seed = &req.Seed
	f := &fitter{ctx: ctx, schedule: named, samples: req.Samples, report: api.Sparsely(progress)}
	net := batch.Network{Model: network, Weights: m.Weights()}
	f.run = k.Batcher.Ensemble(net, m.Shape.Labels, searchSeed(req.Seed), 3*req.Samples)
	start, err := sampling.NewStart(named, "", m, network.Basis())
	if err != nil {
		return nil, err
	}
	if start != nil {
		f.run.Start = start
	}
	f.h, f.w, f.c = m.ImageSize()
	if req.Grid, f.schedule, err = m.OnLevels(req.Grid, named); err != nil {
		return nil, err
	}
	base := f.schedule
	if f.isotropic = req.Isotropic; f.isotropic {
		base.Statistics = named.Statistics.WithoutGain()
	}
	made.parts.Fitted, made.fit, err = f.all(base, solver.Settings{
		Solver: solver.LocalName, Order: req.Order, NFE: req.NFE, LowerOrderFinal: req.LowerOrderFinal,
		Grid: solver.Grid(req.Grid),
	})
	made.parts.Schedule = named.WithSampler(schedule.Sampler{Solver: solver.FittedName, NFE: req.NFE})
	return made, err
}

// fitter is one fit: the first of its samples are fitted to, as many choose the ridge, and those after them, if there
// are any, judge.
type fitter struct {
	ctx         context.Context
	run         *batch.Ensemble
	schedule    catalog.Schedule
	samples     int
	isotropic   bool // one set of coefficients for all coordinates
	h, w, c     int
	report      func(done, total int)
	done, total int
}

// all fits step after step, each from the states that the fitted steps before it lead to, and near the solver local
// with the statistics of a schedule.
func (f *fitter) all(local catalog.Schedule, set solver.Settings) (*solver.Fitted, *api.Fit, error) {
	base, err := local.Plan(set, -1, f.h, f.w, f.c)
	if err != nil {
		return nil, nil, err
	}
	n := len(base.Stages)
	f.total = len(f.run.Rows) * (substeps*n + n*(n+1)/2 + 2*n)
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
	report := &api.Fit{NFE: n, Samples: f.samples}
	if len(f.run.Rows) > 2*f.samples {
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
	plan, err := f.schedule.Plan(solver.Settings{
		Solver: "ipndm_v", Warmup: solver.WarmupHeun, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: fine},
	}, -1, f.h, f.w, f.c)
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
	plans := func(int32) (*solver.Plan, error) { return plan, nil }
	x, err := f.run.States(plan)
	if err != nil {
		return nil, nil, err
	}
	all, images := make([][]float32, len(plan.Stages)), make([][]float32, len(plan.Stages))
	_, err = f.run.Along(f.ctx, plans, func(stage int, latents []float32, rows int, t *kernels.Trajectory) error {
		at, size := make([]float32, len(latents)), f.run.Pixels()
		if err := t.X(at); err != nil {
			return err
		}
		all[stage] = append(all[stage], at[:rows*size]...)
		if err := t.Denoised(at); err != nil {
			return err
		}
		images[stage] = append(images[stage], at[:rows*size]...)
		f.done += rows
		f.report(min(f.done, f.total), f.total)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	states = append(states, f.coordinates(x))
	for i := range all {
		states, denoised = append(states, f.coordinates(all[i])), append(denoised, f.coordinates(images[i]))
	}
	return states, denoised, nil
}

// coordinates returns those of images, [f][sample].
func (f *fitter) coordinates(images []float32) [][]float64 {
	frequencies := f.schedule.Statistics.Frequencies(0)
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
