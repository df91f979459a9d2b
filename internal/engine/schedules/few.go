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
	// fewFirst is the number of samples that every try is measured on, or an eighth of all where that is more. As all
	// see the same latents, the order of the tries changes little after that. The fewNext best so far, and all from noise
	// alone, are measured on twice as many; the fewFinalists best, and the fewRivals best from noise, on all.
	fewFirst     = 128
	fewNext      = 10
	fewFinalists = 3
	fewRivals    = 2
	// fewFits bounds the starts that coefficients are fitted from.
	fewFits = 2
	// fewFit is the number of trajectories that the coefficients of the solver fitted are fitted to, where memory allows,
	// and fewLeastFit the least that are worth it.
	fewFit      = 128
	fewLeastFit = 32
	// fewLatents is the number of trajectories of the ODE error.
	fewLatents = 16
	// fewConverged is about the number of evaluations of a trajectory that has converged.
	fewConverged = 128
	// fewImages is the number of images that are read in about the time of an evaluation.
	fewImages = 16
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
	images *gaussian.Spectrum // of all images
	law    *gaussian.Spectrum // images, started from their own law
	judges []*frechet.Reference
	gains  *local.Statistics // of the denoiser, for the solvers local and fitted
	work   work
}

// try is a sampler that may be chosen.
type try struct {
	api.FewTry
	schedule *schedule.Schedule
	settings solver.Settings
	first    uint64                     // the first of its samples
	samples  []*frechet.Sample[float32] // drawn so far, by judge
}

// fromNoise reports whether the sampler knows nothing of the data.
func (t *try) fromNoise() bool { return t.Start == api.StartStandard && t.settings.Statistics == nil }

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
		guide: by.Held(), work: work{report: api.Sparsely(progress)},
	}
	f.plan()
	if err := f.measure(ctx); err != nil {
		return nil, err
	}
	if f.anisotropic() {
		f.work.begin(passes.DefaultPoints * passes.DefaultSamples)
		set := passes.GeodesicSettings{T: end, Statistics: true, Spectrum: f.images}
		g, err := k.residual(ctx, m, on, d, set, func(m api.Meta) { f.work.at(m["step"].(int), m["steps"].(int)) })
		if err != nil {
			return nil, err
		}
		f.gains = g.Statistics
	}
	return f.choose(ctx, math.Sqrt(end))
}

// tried reports whether the request asks for a solver.
func (f *few) tried(name string) bool { return slices.Contains(f.req.Solvers, name) }

// anisotropic reports whether the request asks for a solver that treats each frequency by itself.
func (f *few) anisotropic() bool { return f.tried(solver.LocalName) || f.tried(solver.FittedName) }

// isotropicSolvers returns the solvers that treat all frequencies alike.
func (f *few) isotropicSolvers() (out []string) {
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
	f.judges = make([]*frechet.Reference, 2)
	f.work.begin(f.data.Len() / fewImages)
	err = pass(ctx, f.data, f.work.at, intoStart(&f.start, f.data, settings),
		into(&f.images, f.data, -1, gaussian.Measure[float32]),
		f.intoJudge(&f.judges[0], frechet.Frequencies), f.intoJudge(&f.judges[1], frechet.Edges))
	if err != nil {
		return err
	}
	// The levels are chosen for the start of all images whose covariance is diagonal where the Gaussian is.
	shared, err := start.New(start.Settings{}, map[int]*start.Law{start.Shared: lawOf(f.images)})
	if err != nil {
		return err
	}
	f.law, err = f.images.From(shared.Law(start.Shared))
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
	isotropic, err := f.isotropic(top)
	if err != nil {
		return nil, err
	}
	matched, err := f.matched(ctx, top)
	if err != nil {
		return nil, err
	}
	local, err := f.local(top)
	if err != nil {
		return nil, err
	}
	tries, err := f.race(ctx, slices.Concat(isotropic, matched), local)
	if err != nil {
		return nil, err
	}
	best := tries[0]
	against := tries[slices.IndexFunc(tries, (*try).fromNoise)]
	out := &api.Few{Model: f.model.Name, Samples: f.req.Samples}
	for _, t := range tries {
		out.Tries = append(out.Tries, t.FewTry)
	}
	f.work.begin(f.heldBack())
	for _, t := range []*try{best, against} {
		held := try{FewTry: api.FewTry{Start: t.Start}, schedule: t.schedule, settings: t.settings}
		held.first = uint64(f.req.Samples)
		if err := f.draw(ctx, &held, f.req.Samples); err != nil {
			return nil, err
		}
		t.Held = &api.FewHeld{Frequencies: held.Frequencies, Edges: held.Edges}
	}
	held := f.ensemble(best, 2*uint64(f.req.Samples), fewLatents)
	if best.ODEError, err = gaussian.SolutionError(ctx, best.settings, best.schedule, held.Sample); err != nil {
		return nil, err
	}
	f.work.begin(0)
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

// race measures the isotropic samplers, those of the solver local, and fitted ones around these, and returns them, the
// best first. All see the first samples; only those that may still win, and the best from noise, see more.
func (f *few) race(ctx context.Context, isotropic, local []*try) ([]*try, error) {
	f.work.begin(f.firstRound())
	tries := slices.Clone(isotropic)
	if f.tried(solver.LocalName) {
		tries = append(tries, local...)
	}
	first := f.first()
	if err := f.goOn(ctx, tries, len(tries), 0, first); err != nil {
		return nil, err
	}
	f.work.begin(f.fits())
	for _, t := range f.fitStarts(local) {
		t, err := f.fitted(ctx, t)
		if err != nil {
			return nil, err
		}
		if err := f.draw(ctx, t, first); err != nil {
			return nil, err
		}
		tries = append(tries, t)
		if rank(tries); slices.Index(tries, t) >= fewFinalists {
			break // what is fitted from higher noise levels will not win either
		}
	}
	f.work.begin(f.finals())
	if err := f.goOn(ctx, tries, fewNext, len(tries), f.second()); err != nil {
		return nil, err
	}
	return tries, f.goOn(ctx, tries, fewFinalists, fewRivals, f.req.Samples)
}

// goOn measures the best n of ranked tries, and the best rivals from noise alone, on more samples, and ranks all again.
func (f *few) goOn(ctx context.Context, tries []*try, n, rivals, samples int) error {
	for i, t := range tries {
		rival := t.fromNoise() && rivals > 0
		if rival {
			rivals--
		}
		if i < n || rival {
			if err := f.draw(ctx, t, samples); err != nil {
				return err
			}
		}
	}
	rank(tries)
	return nil
}

// rank sorts tries: those measured on more samples first, and of these the best.
func rank(tries []*try) {
	slices.SortStableFunc(tries, func(a, b *try) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.score(), b.score()))
	})
}

// score is the geometric mean of the distances, which weighs both alike whatever their scales.
func (t *try) score() float64 {
	if s := t.Frequencies * t.Edges; !math.IsNaN(s) {
		return math.Sqrt(s)
	}
	return math.Inf(1)
}
