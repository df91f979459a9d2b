package schedules

import (
	"cmp"
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/starts"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// isotropic returns what samples without knowing the data: from noise, at the highest level and at a quarter of it.
func (f *few) isotropic(top float64) (out []*try, err error) {
	for _, name := range f.isotropicSolvers() {
		for _, sigma := range []float64{top, top / 4} {
			t, err := f.onLevels(name, sigma)
			if err != nil {
				return nil, err
			}
			t.Start = api.StartStandard
			out = append(out, t)
		}
	}
	return out, nil
}

// matched returns the samplers from the data's law that come closest to the Gaussian, for each noise level to start
// from: on EDM's rule, and on the levels that suit the solver.
func (f *few) matched(ctx context.Context, top float64) (out []*try, err error) {
	none := basis.None(f.data.Height(), f.data.Width())
	for halving := range fewHalvings + 1 {
		sigma := top / float64(int(1)<<halving)
		var here []*try
		for _, name := range f.isotropicSolvers() {
			edm, err := f.onLevels(name, sigma)
			if err != nil {
				return nil, err
			}
			plan, err := solver.New(edm.settings, edm.schedule, 0)
			if err != nil {
				return nil, err
			}
			report, err := f.law.Bench(none, plan)
			if err != nil {
				return nil, err
			}
			edm.W2 = report.W2
			nodes, err := gaussian.Optimize(ctx, f.law, none, gaussian.Settings{
				Sampler: solver.Settings{Solver: name, NFE: f.req.NFE}, T: sigma * sigma, G0: f.model.G0(0),
			})
			if err != nil {
				return nil, err
			}
			chosen := &try{schedule: nodes.Schedule, settings: nodes.Sampler}
			chosen.FewTry = api.FewTry{
				Solver: name, NFE: nodes.Sampler.NFE, SigmaMax: sigma, Levels: "gaussian", W2: nodes.Report.W2,
			}
			here = append(here, edm, chosen)
		}
		slices.SortStableFunc(here, func(a, b *try) int { return cmp.Compare(a.W2, b.W2) })
		for _, t := range here[:min(fewPerLevel, len(here))] {
			t.Start = api.StartMatched
			out = append(out, t)
		}
	}
	return out, nil
}

// local returns the samplers that step every frequency by itself: on EDM's rule, from noise and from the data's law at
// lower noise levels.
func (f *few) local(top float64) (out []*try, err error) {
	for halving := range fewHalvings + 1 {
		if f.gains == nil || halving == 1 {
			continue
		}
		t, err := f.onLevels(solver.LocalName, top/float64(int(1)<<halving))
		if err != nil {
			return nil, err
		}
		if t.Start = api.StartMatched; halving == 0 {
			t.Start = api.StartStandard
		}
		out = append(out, t)
	}
	return out, nil
}

// fitStarts returns the tries of local that coefficients are fitted around, from the lowest noise level but one
// upwards: fitted samplers are best there.
func (f *few) fitStarts(local []*try) []*try {
	if !f.tried(solver.FittedName) || f.trajectories() < fewLeastFit || len(local) == 0 {
		return nil
	}
	starts := slices.Clone(local[:len(local)-1])
	slices.Reverse(starts)
	return starts[:min(fewFits, len(starts))]
}

// trajectories is how many a fit can have in memory.
func (f *few) trajectories() int {
	return min(fewFit, mostFit/(3*9*f.net.On.Pixels()*(f.req.NFE+1)))
}

// fitted returns the sampler whose coefficients are fitted around those of a try of local.
func (f *few) fitted(ctx context.Context, around *try) (*try, error) {
	n := f.trajectories()
	t := &try{FewTry: around.FewTry, schedule: around.schedule, settings: around.settings}
	last := 0
	fit := &fitter{
		ctx: ctx, run: f.ensemble(t, 3*uint64(f.req.Samples), 2*n), samples: n,
		report:   func(done, _ int) { f.work.add(done - last); last = done },
		schedule: catalog.Schedule{Schedule: t.schedule, Statistics: &catalog.Statistics{Statistics: f.gains}},
	}
	fit.h, fit.w, fit.c = f.model.ImageSize()
	coefficients, _, err := fit.all(fit.schedule, t.settings)
	if err != nil {
		return nil, err
	}
	t.FewTry = api.FewTry{Solver: solver.FittedName, NFE: t.NFE, SigmaMax: t.SigmaMax, Start: t.Start, Levels: t.Levels}
	t.settings = solver.Settings{
		Solver: solver.FittedName, Steps: t.settings.Steps, Statistics: f.gains, Fitted: coefficients,
	}
	t.settings, err = t.settings.Resolve()
	return t, err
}

// onLevels returns a sampler on the levels of the grid polynomial from a noise level, as a schedule with its knots
// there, whose uniform steps they are.
func (f *few) onLevels(name string, sigma float64) (*try, error) {
	set := solver.Settings{Solver: name, NFE: f.req.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial}}
	if name == solver.LocalName {
		set.Statistics = f.gains
	}
	edm, err := catalog.EDMFrom(sigma*sigma, f.model.G0(0))
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
	n := set.Steps
	tau, g := make([]float64, n+1), make([]float64, n+1)
	for i, t := range plan.T {
		tau[n-i] = edm.T() * float64(n-i) / float64(n)
		g[n-i], _ = edm.At(0, 0).Eval(t)
	}
	tau[0], tau[n] = 0, edm.T()
	path, err := schedule.NewPath(tau, g)
	if err != nil {
		return nil, err
	}
	of := solver.Settings{Solver: name, Order: set.Order, Steps: n, Statistics: set.Statistics}
	if of, err = of.Resolve(); err != nil {
		return nil, err
	}
	return &try{
		FewTry:   api.FewTry{Solver: name, NFE: of.NFE, SigmaMax: sigma, Levels: solver.GridPolynomial},
		schedule: schedule.Isotropic(path), settings: of,
	}, nil
}

// ensemble returns n latents of a try, with labels as in the data set.
func (f *few) ensemble(t *try, offset uint64, n int) *batch.Ensemble {
	e := f.maker.Batcher.Ensemble(f.net, f.model.Shape.Labels, f.req.Seed+offset, n)
	if f.model.Shape.Labels > 0 && f.data.Classes() > 0 {
		order := latent.Perm(f.req.Seed, streamFew, f.data.Len())
		for i := range e.Rows {
			e.Rows[i].Label = f.data.Label(order[(int(offset)+i)%len(order)])
		}
	}
	e.Guide = f.guide
	if t.Start == api.StartMatched {
		e.Start = starts.Of(f.start, f.net.On.Basis())
	}
	return e
}

// draw draws further samples of a try, until there are n, and measures its distances to the data set by all of them.
func (f *few) draw(ctx context.Context, t *try, n int) error {
	if n -= t.Samples; n <= 0 {
		return nil
	}
	e := f.ensemble(t, t.first+uint64(t.Samples), n)
	count := func(_ int, _ []float32, rows int, _ *kernels.Trajectory) error {
		f.work.add(rows)
		return nil
	}
	x, err := e.Along(ctx, plansOf(t.settings, t.schedule), count)
	if err != nil {
		return err
	}
	if t.samples == nil {
		t.samples = []*frechet.Sample[float32]{f.judges[0].NewSample(), f.judges[1].NewSample()}
	}
	for im := range slices.Chunk(x, e.Pixels()) {
		for _, s := range t.samples {
			s.Add(im)
		}
	}
	t.Samples += n
	t.Frequencies, t.Edges = f.judges[0].DistanceOf(t.samples[0]), f.judges[1].DistanceOf(t.samples[1])
	return nil
}
