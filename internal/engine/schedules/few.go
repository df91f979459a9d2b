package schedules

import (
	"context"
	"encoding/json"
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

// streamLabels orders the labels of a search's samples.
const streamLabels = 0x666577

// few makes the schedule of the best sampler of a search on a model.
func (k *Maker) few(ctx context.Context, req api.FewSchedule, emit func(api.Meta)) (*newSchedule, error) {
	m, d, err := k.Catalog.ModelAndImages(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	ownSchedule, err := m.OwnSchedule()
	if err != nil {
		return nil, err
	}
	isotropic, err := m.IsotropicNetwork()
	if err != nil {
		return nil, err
	}
	guide, hold, err := sampling.NewGuide(k.Catalog, req.Guided, m, isotropic.Basis())
	if err != nil {
		return nil, err
	}
	release, err := hold()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := CheckMeasurable(req.Dataset, d.Height(), d.Width(), d.Channels()); err != nil {
		return nil, err
	}
	out := newOrigin(req.Dataset, d, m, &req.Seed)
	evaluations := 0 // at most, of the search
	progress := search.NewProgress(api.ThrottledProgressByPart(func(m api.Meta) {
		if evaluations > 0 {
			m["evaluations"] = evaluations
		}
		emit(m)
	}))
	progress.Begin("images", search.ShareOfImages, 0)
	images, err := search.MeasureImages(ctx, d, progress.At)
	if err != nil {
		return nil, err
	}
	network := &sampler.OnDevice{
		Device: k.Batcher, Network: sampler.Network{Model: isotropic, Weights: m.Weights()}, Guide: guide, Data: d,
	}
	result, err := search.Few(ctx, network, images, search.Settings{
		NFE: req.NFE, Solvers: req.Solvers, Samples: req.Samples, Seed: req.Seed, G0: m.G0(0), T: ownSchedule.T(),
		Label: Labels(d, m.Shape.Labels, req.Seed), Learn: req.Budget == "minutes", Progress: progress,
		Planned: func(n int) { evaluations = n },
	})
	if err != nil {
		return nil, err
	}
	emit(api.Progress(1000, 1000))
	best := result.Chosen.Settings
	out.parts = catalog.Parts{
		Schedule: result.Chosen.Schedule.WithSampler(schedule.Sampler{
			Solver: best.Solver, Order: best.Order, NFE: best.NFE,
		}),
		Start: result.Start, Statistics: best.Statistics, Fitted: best.Fitted,
	}
	report := DescribeFew(m.Name, false, result)
	report.Seconds = progress.Seconds()
	out.origin.Few, err = json.Marshal(report)
	return out, err
}

// Labels returns the labels of a search's samples for a network of so many classes: as frequent as in the images d, or
// drawn from seeds if d is nil or has no classes.
func Labels(d *data.Dataset, classes int, seed uint64) func(i int, seed uint64) int32 {
	switch {
	case classes == 0:
		return func(int, uint64) int32 { return -1 }
	case d == nil || d.Classes() == 0:
		return func(_ int, seed uint64) int32 { return latent.Label(seed, classes) }
	}
	order := latent.Perm(seed, streamLabels, d.Len())
	return func(i int, _ uint64) int32 { return d.Label(order[i%len(order)]) }
}

// DescribeFew describes the result of a search.
func DescribeFew(model string, paired bool, result *search.FewResult) *api.Few {
	out := &api.Few{
		Model: model, Samples: result.HeldOut, Paired: paired, Stopped: result.Stopped,
		Chosen: describeTry(result.Chosen), Against: describeTry(result.Against),
	}
	out.Ratio = math.Exp(result.Gain.Change)
	out.RatioStderr = out.Ratio * result.Gain.Stderr
	for _, c := range result.Tries {
		description := describeTry(c)
		description.Held, description.ODEError = nil, 0
		out.Tries = append(out.Tries, description)
	}
	out.Summarize()
	return out
}

func describeTry(c *search.Candidate) api.FewTry {
	out := api.FewTry{
		Solver: c.Settings.Solver, NFE: c.Settings.NFE, SigmaMax: c.SigmaMax, Start: api.StartStandard, Levels: c.Levels,
		Samples: c.Samples, FewDistances: describeDistances(c.Distances), ODEError: c.ODEError,
	}
	if c.Matched {
		out.Start = api.StartMatched
	}
	if c.HeldOut != nil {
		distances := describeDistances(c.HeldOut)
		out.Held = &distances
	}
	return out
}

func describeDistances(d search.Distances) api.FewDistances {
	if len(d) == 1 {
		return api.FewDistances{Distance: d[0]}
	}
	return api.FewDistances{Frequencies: d[0], Edges: d[1], Responses: d[2]}
}
