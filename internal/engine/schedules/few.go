package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// StreamLabels orders the labels of a search's samples.
const StreamLabels = 0x666577

// few makes the schedule of the sampler that does best among the candidates.
func (k *Maker) few(ctx context.Context, req api.FewSchedule, emit func(api.Meta)) (*newSchedule, error) {
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
	if err := CheckMeasurable(req.Dataset, d.Height(), d.Width(), d.Channels()); err != nil {
		return nil, err
	}
	made := &newSchedule{}
	if made.origin, err = k.origin(req.Dataset, m); err != nil {
		return nil, err
	}
	made.origin.Seed = &req.Seed
	planned := 0 // evaluations
	progress := search.NewProgress(api.ThrottledProgressByPart(func(m api.Meta) {
		if planned > 0 {
			m["evaluations"] = planned
		}
		emit(m)
	}))
	progress.Begin("images", search.ShareOfImages, 0)
	images, err := search.MeasureImages(ctx, d, progress.At)
	if bad, ok := errors.AsType[*search.ImagesError](err); ok {
		return nil, api.Errorf(api.BadRequest, "The data set %q cannot be compared with samples: %w", req.Dataset,
			bad.Unwrap())
	}
	if err != nil {
		return nil, err
	}
	network := &sampler.OnDevice{
		Device: k.Batcher, Network: sampler.Network{Model: isotropic, Weights: m.Weights()}, Guide: guide.Mix(), Data: d,
	}
	found, err := search.Few(ctx, network, images, search.Settings{
		NFE: req.NFE, Solvers: req.Solvers, Samples: req.Samples, Seed: req.Seed, G0: m.G0(0), T: end,
		Label: labelsAsIn(d, m, req.Seed), Learn: req.Budget == "minutes", Progress: progress,
		Planned: func(evaluations int) { planned = evaluations },
	})
	if errors.Is(err, search.ErrTooLarge) {
		return nil, api.Errorf(api.TooLarge, "budget must be seconds: %w", err)
	}
	if errors.Is(err, search.ErrNotFinite) {
		return nil, api.Errorf(api.BadRequest, "The samples of the model %q are not finite", m.Name).
			WithHint("Look at samples of ipndm; train the model further, or name other solvers.")
	}
	if err != nil {
		return nil, err
	}
	emit(api.Progress(1000, 1000))
	best := found.Chosen.Settings
	made.parts = catalog.Parts{
		Schedule: found.Chosen.Schedule.WithSampler(schedule.Sampler{
			Solver: best.Solver, Order: best.Order, NFE: best.NFE,
		}),
		Start: found.Start, Statistics: best.Statistics, Fitted: best.Fitted,
	}
	report := DescribeFew(m.Name, req.Samples, false, found)
	report.Seconds = progress.Seconds()
	made.origin.Few, err = json.Marshal(report)
	return made, err
}

// labelsAsIn returns labels as frequent as in the data set, of a model that has classes.
func labelsAsIn(d *data.Dataset, m *catalog.Model, seed uint64) func(i int, seed uint64) int32 {
	if m.Shape.Labels == 0 || d.Classes() == 0 {
		return labelsDrawn(m)
	}
	order := latent.Perm(seed, StreamLabels, d.Len())
	return func(i int, _ uint64) int32 { return d.Label(order[i%len(order)]) }
}

// labelsDrawn returns labels that are drawn from seeds, of a model that has classes.
func labelsDrawn(m *catalog.Model) func(i int, seed uint64) int32 {
	return func(_ int, seed uint64) int32 {
		if m.Shape.Labels == 0 {
			return -1
		}
		return latent.Label(seed, m.Shape.Labels)
	}
}

// DescribeFew is the reply of a search.
func DescribeFew(model string, samples int, paired bool, found *search.FewResult) *api.Few {
	out := &api.Few{
		Model: model, Samples: samples, Paired: paired, Stopped: found.Stopped,
		Chosen: describeTry(found.Chosen), Against: describeTry(found.Against),
	}
	out.Ratio = math.Exp(found.Gain.Change)
	out.RatioStderr = out.Ratio * found.Gain.Stderr
	for _, c := range found.Tries {
		try := describeTry(c)
		try.Held, try.ODEError = nil, 0
		out.Tries = append(out.Tries, try)
	}
	out.Summarize()
	return out
}

func describeTry(c *search.Candidate) api.FewTry {
	out := api.FewTry{
		Solver: c.Settings.Solver, NFE: c.Settings.NFE, SigmaMax: c.SigmaMax, Start: api.StartStandard, Levels: c.Levels,
		W2: c.W2, Samples: c.Samples, FewDistances: describeDistances(c.Distances), ODEError: c.ODEError,
	}
	if c.Matched {
		out.Start = api.StartMatched
	}
	if c.HeldOut != nil {
		held := describeDistances(c.HeldOut)
		out.Held = &held
	}
	return out
}

func describeDistances(d search.Distances) api.FewDistances {
	if len(d) == 1 {
		return api.FewDistances{Distance: d[0]}
	}
	return api.FewDistances{Frequencies: d[0], Edges: d[1], Responses: d[2]}
}
