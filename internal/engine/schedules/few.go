package schedules

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/guides"
	"github.com/anisoflight/anisoflight/internal/engine/starts"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

const (
	// fewHalvings is how many times the highest noise level is halved for the lower ones that sampling may start from.
	fewHalvings = 4
	// fewPerLevel bounds the samplers that are tried on the network for each level: those closest to the Gaussian.
	fewPerLevel = 3
	// fewFit is the number of trajectories that the coefficients of the solver fitted are fitted to, where memory allows,
	// and fewLeastFit the least that are worth it.
	fewFit      = 128
	fewLeastFit = 32
	// fewLatents is the number of trajectories of the ODE error.
	fewLatents = 64
	// streamFew orders the labels of the samples.
	streamFew = 0x666577
)

// few is one choice of a schedule for few evaluations.
type few struct {
	maker  *Maker
	req    api.FewSchedule
	model  *catalog.Model
	net    batch.Network
	guide  *batch.Guide // nil for none
	data   *data.Dataset
	start  *start.Start
	law    *gaussian.Spectrum // started from the law of all images
	judges []*frechet.Reference
	gains  *local.Statistics // of the denoiser, for the solvers local and fitted
	report func(done, total int)
	done   int
	total  int
}

// try is a sampler that may be chosen.
type try struct {
	api.FewTry
	schedule *schedule.Schedule
	settings solver.Settings
}

// few makes the schedule of the sampler that does best among those tried.
func (k *Maker) few(ctx context.Context, req api.FewSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, d, end, err := k.onImages(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	on, err := m.Plain()
	if err != nil {
		return nil, err
	}
	by, err := guides.New(k.Catalog, req.Guided, m, on.Basis())
	if err != nil {
		return nil, err
	}
	release, err := by.Hold(m)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := checkMemory(req.Samples, on, 1, mostTeacher); err != nil {
		return nil, err
	}
	f := &few{
		maker: k, req: req, model: m, net: batch.Network{On: on, Weights: m.Weights()}, data: d,
		guide: by.Held(), report: api.Sparsely(progress),
	}
	if err := f.measure(ctx); err != nil {
		return nil, err
	}
	if f.tried(solver.LocalName) || f.tried(solver.FittedName) {
		g, err := k.residual(ctx, m, on, d, passes.GeodesicSettings{T: end, Statistics: true}, progress)
		if err != nil {
			return nil, err
		}
		f.gains = g.Statistics
	}
	return f.choose(ctx, math.Sqrt(end))
}

// tried reports whether the request asks for a solver.
func (f *few) tried(name string) bool { return slices.Contains(f.req.Solvers, name) }

// plain returns the solvers that treat all frequencies alike.
func (f *few) plain() (out []string) {
	for _, name := range f.req.Solvers {
		if name != solver.LocalName && name != solver.FittedName {
			out = append(out, name)
		}
	}
	return out
}

// measure takes the moments of the data and of their features, in one pass.
func (f *few) measure(ctx context.Context) (err error) {
	if err := checkMeasurable(f.req.Dataset, f.data); err != nil {
		return err
	}
	settings := api.StartSettings{Covariance: start.DCT}
	if f.req.Start != nil {
		settings = f.req.Start.StartSettings
	}
	var law *gaussian.Spectrum
	f.judges = make([]*frechet.Reference, 2)
	err = pass(ctx, f.data, f.report, intoStart(&f.start, f.data, settings),
		into(&law, f.data, -1, gaussian.Measure[float32]),
		f.intoJudge(&f.judges[0], frechet.Frequencies), f.intoJudge(&f.judges[1], frechet.Edges))
	if err != nil {
		return err
	}
	// The levels are chosen for the start of all images whose covariance is diagonal where the Gaussian is.
	shared, err := start.New(start.Settings{}, map[int]*start.Law{start.Shared: lawOf(law)})
	if err != nil {
		return err
	}
	f.law, err = law.From(shared.Law(start.Shared))
	return err
}

// intoJudge returns the reader that takes the moments of features into *judge.
func (f *few) intoJudge(judge **frechet.Reference, features func(h, w, c int) frechet.Features) func(images) error {
	return into(judge, f.data, -1, func(h, w, c int, all iter.Seq[[]float32]) (*frechet.Reference, error) {
		of := features(h, w, c)
		of.Unbounded = f.data.Normalization() != nil
		r, err := frechet.NewReference(of, all)
		if err != nil {
			err = api.Errorf(api.BadRequest, "The data set %q cannot be compared with samples: %w", f.req.Dataset, err)
		}
		return r, err
	})
}

// lawOf returns the normal law of a spectrum, about a mean of whatever sign.
func lawOf(s *gaussian.Spectrum) *start.Law {
	l := &start.Law{H: s.H, W: s.W, C: s.C, Axes: s.Axes}
	mean := make([]float64, len(s.Directions))
	for i, d := range s.Directions {
		mean[i] = d.Mean
		l.Variance = append(l.Variance, d.Variance)
	}
	l.Mean = make([]float64, len(mean))
	basis.NewFrequencies(s.H, s.W, s.C, s.Axes).Inverse(l.Mean, mean)
	return l
}

// choose tries samplers from noise levels up to top, and reports on the best.
func (f *few) choose(ctx context.Context, top float64) (*newSchedule, error) {
	n := len(f.plain())
	f.total = n*(fewHalvings+1) + 2*n + fewPerLevel*(fewHalvings+1) + 3*len(f.req.Solvers)
	isotropic, err := f.isotropic(top)
	if err != nil {
		return nil, err
	}
	matched, err := f.matched(ctx, top)
	if err != nil {
		return nil, err
	}
	anisotropic, err := f.anisotropic(ctx, top)
	if err != nil {
		return nil, err
	}
	tries := slices.Concat(isotropic, matched, anisotropic)
	for i := range tries {
		if tries[i].Frequencies, tries[i].Edges, err = f.distances(ctx, tries[i], 0); err != nil {
			return nil, err
		}
		f.step()
	}
	slices.SortStableFunc(tries, func(a, b try) int { return cmp.Compare(a.score(), b.score()) })
	best := tries[0]
	against := tries[slices.IndexFunc(tries, func(t try) bool {
		return t.Start == api.StartStandard && t.settings.Statistics == nil
	})]
	out := &api.Few{Model: f.model.Name, Samples: f.req.Samples}
	for _, t := range tries {
		out.Tries = append(out.Tries, t.FewTry)
	}
	for _, t := range []*try{&best, &against} {
		t.Held = &api.FewHeld{}
		if t.Held.Frequencies, t.Held.Edges, err = f.distances(ctx, *t, uint64(f.req.Samples)); err != nil {
			return nil, err
		}
		f.step()
	}
	held := f.ensemble(best, 2*uint64(f.req.Samples), fewLatents)
	if best.ODEError, err = gaussian.SolutionError(ctx, best.settings, best.schedule, held.Sample); err != nil {
		return nil, err
	}
	f.step()
	out.Chosen, out.Against = best.FewTry, against.FewTry
	made := plain(best.schedule.WithSampler(schedule.Sampler{
		Solver: best.settings.Solver, Order: best.settings.Order, NFE: best.NFE,
	}))
	made.few, made.parts.Statistics, made.parts.Fitted = out, best.settings.Statistics, best.settings.Fitted
	if best.Start == api.StartMatched {
		made.parts.Start = f.start
	}
	return made, nil
}

func (f *few) step() {
	f.done++
	f.report(f.done, f.total)
}

// score is the geometric mean of the distances, which weighs both alike whatever their scales.
func (t try) score() float64 {
	if s := t.Frequencies * t.Edges; !math.IsNaN(s) {
		return math.Sqrt(s)
	}
	return math.Inf(1)
}

// isotropic returns what samples without knowing the data: from noise, at the highest level and at a quarter of it.
func (f *few) isotropic(top float64) (out []try, err error) {
	for _, name := range f.plain() {
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
func (f *few) matched(ctx context.Context, top float64) (out []try, err error) {
	none := basis.None(f.data.Height(), f.data.Width())
	for halving := range fewHalvings + 1 {
		sigma := top / float64(int(1)<<halving)
		var here []try
		for _, name := range f.plain() {
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
			chosen := try{schedule: nodes.Schedule, settings: nodes.Sampler}
			chosen.FewTry = api.FewTry{
				Solver: name, NFE: nodes.Sampler.NFE, SigmaMax: sigma, Levels: "gaussian", W2: nodes.Report.W2,
			}
			here = append(here, edm, chosen)
			f.step()
		}
		slices.SortStableFunc(here, func(a, b try) int { return cmp.Compare(a.W2, b.W2) })
		for _, t := range here[:min(fewPerLevel, len(here))] {
			t.Start = api.StartMatched
			out = append(out, t)
		}
	}
	return out, nil
}

// anisotropic returns the samplers that step every frequency by itself: local on EDM's rule, from noise and from the
// data's law at lower noise levels, and coefficients fitted around it to the model's own trajectories.
func (f *few) anisotropic(ctx context.Context, top float64) (out []try, err error) {
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
		if f.tried(solver.LocalName) {
			out = append(out, t)
		}
		if n := f.trajectories(); f.tried(solver.FittedName) && halving < fewHalvings && n >= fewLeastFit {
			if t, err = f.fitted(ctx, t, n); err != nil {
				return nil, err
			}
			out = append(out, t)
			f.step()
		}
	}
	return out, nil
}

// trajectories is how many a fit can have in memory.
func (f *few) trajectories() int {
	return min(fewFit, mostFit/(3*9*f.net.On.Pixels()*(f.req.NFE+1)))
}

// fitted returns the sampler whose coefficients are fitted around those of local to n trajectories.
func (f *few) fitted(ctx context.Context, t try, n int) (try, error) {
	fit := &fitter{
		ctx: ctx, run: f.ensemble(t, 3*uint64(f.req.Samples), 3*n), samples: n, report: func(int, int) {},
		schedule: catalog.Schedule{Schedule: t.schedule, Statistics: &catalog.Statistics{Statistics: f.gains}},
	}
	fit.h, fit.w, fit.c = f.model.ImageSize()
	coefficients, _, err := fit.all(fit.schedule, t.settings)
	if err != nil {
		return try{}, err
	}
	t.Solver, t.settings = solver.FittedName, solver.Settings{
		Solver: solver.FittedName, Steps: t.settings.Steps, Statistics: f.gains, Fitted: coefficients,
	}
	t.settings, err = t.settings.Resolve()
	return t, err
}

// onLevels returns a sampler on the levels of the grid polynomial from a noise level, as a schedule with its knots
// there, whose uniform steps they are.
func (f *few) onLevels(name string, sigma float64) (try, error) {
	set := solver.Settings{Solver: name, NFE: f.req.NFE, Grid: solver.Grid{Kind: solver.GridPolynomial}}
	if name == solver.LocalName {
		set.Statistics = f.gains
	}
	edm, err := catalog.EDMFrom(sigma*sigma, f.model.G0(0))
	if err != nil {
		return try{}, err
	}
	if set, err = set.Resolve(); err != nil {
		return try{}, err
	}
	plan, err := solver.New(set, edm, 0)
	if err != nil {
		return try{}, err
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
		return try{}, err
	}
	of := solver.Settings{Solver: name, Order: set.Order, Steps: n, Statistics: set.Statistics}
	if of, err = of.Resolve(); err != nil {
		return try{}, err
	}
	return try{
		FewTry:   api.FewTry{Solver: name, NFE: of.NFE, SigmaMax: sigma, Levels: solver.GridPolynomial},
		schedule: schedule.Isotropic(path), settings: of,
	}, nil
}

// ensemble returns n latents of a try, with labels as in the data set.
func (f *few) ensemble(t try, offset uint64, n int) *batch.Ensemble {
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

// distances draws the samples of a try and compares them with the data set.
func (f *few) distances(ctx context.Context, t try, offset uint64) (frequencies, edges float64, err error) {
	e := f.ensemble(t, offset, f.req.Samples)
	x, err := e.Along(ctx, plansOf(t.settings, t.schedule), nil)
	if err != nil {
		return 0, 0, err
	}
	images := slices.Chunk(x, e.Pixels())
	return f.judges[0].Distance(images), f.judges[1].Distance(images), nil
}
