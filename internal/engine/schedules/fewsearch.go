package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
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

// How the samples of a search are spent. All candidates see the same latents, so their order changes little after the
// first round.
const (
	// firstRoundSamples is the least number of samples of a candidate in the first round; an eighth of all if that is
	// more.
	firstRoundSamples = 128
	// secondRoundCandidates is the number of candidates that are measured on twice as many samples, apart from all that
	// start from noise.
	secondRoundCandidates = 10
	// finalCandidates and finalRivals are the numbers of candidates, and of those from noise, that see all samples.
	finalCandidates = 3
	finalRivals     = 2
	// odeErrorLatents is the number of trajectories of the ODE error.
	odeErrorLatents = 16
	// streamLabels orders the labels of the samples.
	streamLabels = 0x666577
)

// maxSampleNumbers bounds the numbers of all samples of a candidate.
const maxSampleNumbers = 1 << 26

// fewStepSearch is one search for a sampler of few evaluations.
type fewStepSearch struct {
	maker      *Maker
	req        api.FewSchedule
	model      *catalog.Model
	network    batch.Network
	guide      *batch.Guide // nil for none
	data       *data.Dataset
	start      *start.Start
	images     *gaussian.Spectrum // of all images
	law        *gaussian.Spectrum // images, with sampling started from their own law
	references []*frechet.Reference
	statistics *local.Statistics // of the denoiser, for solvers by coordinate
	progress   progress
}

// few makes the schedule of the sampler that does best among the candidates.
func (k *Maker) few(ctx context.Context, req api.FewSchedule, report func(api.Meta)) (*newSchedule, error) {
	m, d, end, err := k.modelAndImages(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	isotropic, err := m.IsotropicNetwork()
	if err != nil {
		return nil, err
	}
	guide, err := sampling.NewGuide(k.Catalog, req.Guided, m, isotropic.Basis())
	if err != nil {
		return nil, err
	}
	release, err := guide.Hold(m)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := checkMemory(req.Samples, isotropic, 1, maxSampleNumbers); err != nil {
		return nil, err
	}
	origin, err := k.origin(req.Dataset, m)
	if err != nil {
		return nil, err
	}
	origin.Seed = &req.Seed
	f := &fewStepSearch{
		maker: k, req: req, model: m, network: batch.Network{Model: isotropic, Weights: m.Weights()}, data: d,
		guide: guide.Held(), progress: progress{report: api.Sparsely(report)},
	}
	if err := f.measureImages(ctx); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(req.Solvers, byCoordinate) {
		if err := f.measureStatistics(ctx, end); err != nil {
			return nil, err
		}
	}
	made, found, err := f.choose(ctx, math.Sqrt(end))
	if err != nil {
		return nil, err
	}
	report(api.Progress(1000, 1000))
	made.origin = origin
	made.origin.Few, err = json.Marshal(found)
	return made, err
}

// asks reports whether the request names a solver.
func (f *fewStepSearch) asks(name string) bool { return slices.Contains(f.req.Solvers, name) }

// byCoordinate reports whether a solver has coefficients for every frequency.
func byCoordinate(name string) bool {
	m, err := solver.MethodNamed(name)
	return err == nil && m.ByCoordinate
}

// isotropicSolvers returns the requested solvers that use the same coefficients for all frequencies.
func (f *fewStepSearch) isotropicSolvers() []string {
	return slices.DeleteFunc(slices.Clone(f.req.Solvers), byCoordinate)
}

// measureImages measures the law of the images and of their features, in one pass.
func (f *fewStepSearch) measureImages(ctx context.Context) (err error) {
	if err := checkMeasurable(f.req.Dataset, f.data); err != nil {
		return err
	}
	h, w, c := f.data.Height(), f.data.Width(), f.data.Channels()
	law, moments := start.NewEstimator(h, w, c, true, f.data.Normalization()), basis.NewFrequencyMoments(h, w, c)
	samples := make([]*frechet.Sample, 0, 2)
	for _, features := range []frechet.Features{frechet.Frequencies(h, w, c), frechet.Edges(h, w, c)} {
		features.Unbounded = f.data.Normalization() != nil
		samples = append(samples, features.NewSample())
	}
	f.progress.begin(shareOfImages, 0)
	err = pass(ctx, f.data, f.progress.at, law.Add, func(_ int, image []float64) error {
		moments.Add(image)
		for _, s := range samples {
			s.Add(image)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.start, err = law.Start(); err != nil {
		return err
	}
	if f.images, err = gaussian.NewSpectrum(moments); err != nil {
		return err
	}
	for _, s := range samples {
		reference, err := s.Reference()
		if err != nil {
			return api.Errorf(api.BadRequest, "The data set %q cannot be compared with samples: %w", f.req.Dataset, err)
		}
		f.references = append(f.references, reference)
	}
	f.law = f.images.Matched() // the levels are chosen for the start of all images
	return nil
}

// measureStatistics measures the denoiser at noise levels up to √T, in the frequencies of the images' spectrum.
func (f *fewStepSearch) measureStatistics(ctx context.Context, T float64) error {
	f.progress.begin(shareOfStatistics, 0)
	nobody := func(api.Event) error { return nil } // the search reports all of its work
	return f.maker.Queue.Run(ctx, nobody, func(ctx context.Context, report func(done, total int)) (err error) {
		f.statistics, err = passes.MeasureStatistics(ctx, f.network.Model, f.network.Weights, f.data, passes.GeodesicSettings{
			T: T, Spectrum: f.images,
			Progress: func(done, total int) {
				report(done, total) // which gives way to other requests
				f.progress.at(done, total)
			},
		})
		return err
	})
}

// choose measures the candidates from noise levels up to top, and reports on the best.
func (f *fewStepSearch) choose(ctx context.Context, top float64) (*newSchedule, *api.Few, error) {
	fromNoise, err := f.noiseCandidates(top)
	if err != nil {
		return nil, nil, err
	}
	matched, err := f.matchedCandidates(ctx, top)
	if err != nil {
		return nil, nil, err
	}
	local, err := f.localCandidates(top)
	if err != nil {
		return nil, nil, err
	}
	ranked, err := f.race(ctx, slices.Concat(fromNoise, matched), local)
	if err != nil {
		return nil, nil, err
	}
	best := ranked[0]
	rival := ranked[slices.IndexFunc(ranked, (*candidate).fromNoise)]
	found := &api.Few{Model: f.model.Name, Samples: f.req.Samples}
	for _, c := range ranked {
		found.Tries = append(found.Tries, c.FewTry)
	}
	if err := f.judge(ctx, best, rival); err != nil {
		return nil, nil, err
	}
	found.Chosen, found.Against = best.FewTry, rival.FewTry
	found.Summarize()
	made := newScheduleOf(best.schedule.WithSampler(schedule.Sampler{
		Solver: best.settings.Solver, Order: best.settings.Order, NFE: best.NFE,
	}))
	made.parts.Statistics, made.parts.Fitted = best.settings.Statistics, best.settings.Fitted
	if best.Start == api.StartMatched {
		made.parts.Start = f.start
	}
	return made, found, nil
}

// judge measures the best candidate and its rival from noise on samples that nothing was chosen by.
func (f *fewStepSearch) judge(ctx context.Context, best, rival *candidate) (err error) {
	f.progress.begin(shareOfJudge, 2*f.req.Samples*f.req.NFE)
	for _, c := range []*candidate{best, rival} {
		unseen := candidate{FewTry: api.FewTry{Start: c.Start}, schedule: c.schedule, settings: c.settings}
		unseen.first = uint64(f.req.Samples)
		if err := f.draw(ctx, &unseen, f.req.Samples); err != nil {
			return err
		}
		c.Held = &api.FewHeld{Frequencies: unseen.Frequencies, Edges: unseen.Edges}
	}
	unseen := f.ensemble(best, 2*uint64(f.req.Samples), odeErrorLatents)
	best.ODEError, err = gaussian.SolutionError(ctx, best.settings, best.schedule, unseen.Sample)
	return err
}

// race measures the isotropic candidates, those of the solver local, and fitted ones around these. It returns them, the
// best first. All see the first samples; only those that may still win, and the best from noise, see more.
func (f *fewStepSearch) race(ctx context.Context, isotropic, local []*candidate) ([]*candidate, error) {
	all := slices.Clone(isotropic)
	if f.asks(solver.LocalName) {
		all = append(all, local...)
	}
	first := f.firstRound()
	if err := f.measureBest(ctx, all, len(all), 0, first, shareOfFirstRound); err != nil {
		return nil, err
	}
	for _, around := range f.fitStarts(local) {
		f.progress.begin(shareOfFits/maxFits, 0)
		c, err := f.fittedCandidate(ctx, around)
		if err != nil {
			return nil, err
		}
		f.progress.begin(0, 0)
		if err := f.draw(ctx, c, first); err != nil {
			return nil, err
		}
		all = append(all, c)
		if rank(all); slices.Index(all, c) >= finalCandidates {
			break // what is fitted from higher noise levels will not win either
		}
	}
	second := min(f.req.Samples, 2*first)
	if err := f.measureBest(ctx, all, secondRoundCandidates, len(all), second, shareOfMore/2); err != nil {
		return nil, err
	}
	return all, f.measureBest(ctx, all, finalCandidates, finalRivals, f.req.Samples, shareOfMore/2)
}

// measureBest measures the best n of ranked candidates, and the best rivals from noise, on more samples, and ranks all
// again.
func (f *fewStepSearch) measureBest(ctx context.Context, ranked []*candidate, n, rivals, samples, share int) error {
	var measured []*candidate
	evaluations := 0
	for i, c := range ranked {
		rival := c.fromNoise() && rivals > 0
		if rival {
			rivals--
		}
		if i < n || rival {
			measured = append(measured, c)
			evaluations += max(0, samples-c.Samples) * f.req.NFE
		}
	}
	f.progress.begin(share, evaluations)
	for _, c := range measured {
		if err := f.draw(ctx, c, samples); err != nil {
			return err
		}
	}
	rank(ranked)
	return nil
}

// rank sorts candidates: those measured on more samples first, and of these the best.
func rank(all []*candidate) {
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.score(), b.score()))
	})
}

// firstRound is the number of samples of a candidate in the first round.
func (f *fewStepSearch) firstRound() int {
	return min(f.req.Samples, max(firstRoundSamples, f.req.Samples/8))
}

// The shares of a search's parts in its time, in thousandths.
const (
	shareOfImages     = 50
	shareOfStatistics = 250
	shareOfFirstRound = 350
	shareOfFits       = 150
	shareOfMore       = 150 // half for each round that measures on more samples
	shareOfJudge      = 50
)

// progress reports the parts of a search as one whole.
type progress struct {
	report             func(done, total int)
	begun, share       int // thousandths before the part in work, and its own
	evaluated, planned int // evaluations of it, if they are counted
}

// begin ends the part in work, whether or not all of it was needed, and begins the next, of some evaluations.
func (p *progress) begin(share, planned int) {
	p.begun += p.share
	p.share, p.evaluated, p.planned = share, 0, max(1, planned)
	p.at(0, 1)
}

// at reports that done of total units of the part in work are done.
func (p *progress) at(done, total int) {
	p.report(p.begun+int(int64(p.share)*int64(done)/int64(total)), 1000)
}

// add reports that n further evaluations of the part in work are done.
func (p *progress) add(n int) {
	p.evaluated = min(p.evaluated+n, p.planned)
	p.at(p.evaluated, p.planned)
}
