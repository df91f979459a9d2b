// Package plans searches samplers of few evaluations for the models of a catalogue, and describes what a search found.
//
// Begin with Make.
package plans

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"sync"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
	"github.com/anisoflight/anisoflight/internal/engine/schedules"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// streamLabels orders the labels of a search's samples.
const streamLabels = 0x666577

// Maker makes plans.
type Maker struct {
	Catalog *catalog.Catalog
	Batcher *batch.Batcher

	searches sync.Map // by the token of those that run, what ends them
}

// EndSearch ends a search with the best plan so far. One that has ended is none.
func (k *Maker) EndSearch(_ context.Context, req api.EndSearch) error {
	if end, ok := k.searches.Load(req.Search); ok {
		end.(context.CancelCauseFunc)(sampler.ErrLeft)
	}
	return nil
}

// endable is a network that leaves when its context ends by [sampler.ErrLeft].
type endable struct {
	sampler.Ensemble
	ctx context.Context
}

func (n endable) Follow(ctx context.Context, t sampler.Trajectories, reducers ...sampler.Reducer) error {
	return n.explain(n.Ensemble.Follow(ctx, t, reducers...))
}

func (n endable) Statistics(ctx context.Context, T float64, s *gaussian.Spectrum, report func(done, total int),
) (*local.Statistics, error) {
	found, err := n.Ensemble.Statistics(ctx, T, s, report)
	return found, n.explain(err)
}

func (n endable) explain(err error) error {
	if err != nil && errors.Is(context.Cause(n.ctx), sampler.ErrLeft) {
		return sampler.ErrLeft
	}
	return err
}

// Make searches a plan for a model, and stores it if the request has a name. A plan that cannot be stored says so in
// its notes.
func (k *Maker) Make(ctx context.Context, req api.MakePlan, emit func(api.Meta)) (out api.Plan, err error) {
	if req.Name != "" { // before the work; StorePlan checks again
		if err := k.Catalog.FreePlan(req.Name, req.Replace); err != nil {
			return out, err
		}
	}
	m, d, err := k.modelAndImages(req)
	if err != nil {
		return out, err
	}
	ownSchedule, err := m.OwnSchedule()
	if err != nil {
		return out, err
	}
	isotropic, err := m.IsotropicNetwork()
	if err != nil {
		return out, err
	}
	guide, hold, err := sampling.NewGuide(k.Catalog, req.Guided, m, isotropic.Basis())
	if err != nil {
		return out, err
	}
	release, err := hold()
	if err != nil {
		return out, err
	}
	defer release()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	token := rand.Text()
	k.searches.Store(token, end)
	defer k.searches.Delete(token)
	evaluations := 0 // of the search, about
	progress := search.NewProgress(api.ThrottledProgressByPart(func(m api.Meta) {
		if evaluations > 0 {
			m["evaluations"] = evaluations
		}
		m["search"] = token
		emit(m)
	}))
	network := endable{&sampler.OnDevice{
		Device: k.Batcher, Network: sampler.Network{Model: isotropic, Weights: m.Weights()}, Guide: guide, Data: d,
	}, ctx}
	set := search.Settings{
		NFE: req.NFE, Solvers: req.Solvers, Samples: req.Samples, Seed: req.Seed, G0: m.G0(0), T: ownSchedule.T(),
		Label: Labels(d, m.Shape.Labels, req.Seed), Learn: req.Learn, Budget: req.Budget,
		Seconds: req.Seconds, Progress: progress,
		LearnGuidance: guide != nil && (req.LearnGuidance == nil || *req.LearnGuidance),
		Planned:       func(n int) { evaluations = n },
	}
	found, err := searched(ctx, network, d, m.Shape.Labels > 0, set)
	if err != nil {
		return out, ExplainBudget(err, 1)
	}
	emit(api.Progress(1000, 1000))
	report := Describe(m.Name, found)
	report.Seconds = progress.Seconds()
	if out, err = PlanOf(found); err != nil {
		return out, err
	}
	origin := schedule.Provenance{Kind: "few", Model: &schedule.Source{Name: m.Name, Hash: m.Hash}, Seed: &req.Seed}
	if d != nil {
		origin.Dataset = &schedule.Source{Name: req.Dataset, Hash: d.Hash()}
	}
	out.Model, out.Info, out.Provenance = m.Name, report, k.Catalog.Stamped(origin)
	if req.Name == "" {
		return out, nil
	}
	made, err := catalog.NewPlan(req.Name, out)
	if err == nil {
		_, err = k.Catalog.StorePlan(made, req.Replace)
	}
	if err != nil { // the plan is worth more than its name
		out.Notes = append(out.Notes, "the plan is not stored: "+api.ErrorOf(err).Message)
	}
	return out, nil
}

// modelAndImages returns the model of a request, and its data set, which may be nil.
func (k *Maker) modelAndImages(req api.MakePlan) (*catalog.Model, *data.Dataset, error) {
	if req.Dataset == "" {
		m, err := k.Catalog.Model(req.Model)
		return m, nil, err
	}
	m, d, err := k.Catalog.ModelAndImages(req.Model, req.Dataset)
	if err == nil {
		err = schedules.CheckMeasurable(req.Dataset, d.Height(), d.Width(), d.Channels())
	}
	return m, d, err
}

// searched searches among images, which may be nil, for a network that knows their classes or not.
func searched(ctx context.Context, network sampler.Ensemble, d *data.Dataset, classes bool, set search.Settings,
) (*search.FewResult, error) {
	if d == nil {
		return search.Paired(ctx, network, set)
	}
	set.Progress.Begin("images", search.ShareOfImages, 0)
	images, err := search.MeasureImages(ctx, d, classes, set.Progress.At)
	if err != nil {
		return nil, err
	}
	return search.Few(ctx, network, images, set)
}

// PlanOf returns the plan that a search chose, with its law.
func PlanOf(found *search.FewResult) (out api.Plan, err error) {
	out = catalog.DescribePlan(found.Chosen.Plan)
	out.Solver = found.Chosen.Solver
	var law []byte
	var info *api.StartInfo
	if found.Start != nil {
		if law, info, err = DescribeLaw(found.Start); err != nil {
			return out, err
		}
	}
	Complete(&out, catalog.Numbers(found.Chosen.Plan, found.Tails), info)
	out.Law = law
	return out, nil
}

// DescribeLaw returns the file of a law, and its description.
func DescribeLaw(law *start.Start) ([]byte, *api.StartInfo, error) {
	file, err := checkpoint.StartFile.Encode(law)
	if err != nil {
		return nil, nil, err
	}
	hash, err := checkpoint.StartFile.Hash(law)
	return file, catalog.DescribeStart(law, hash), err
}

// Complete sets the numbers of a plan of a search, from a start unless it is nil. Where classes have laws of their own,
// each has these numbers.
func Complete(out *api.Plan, numbers api.PlanNumbers, start *api.StartInfo) {
	out.Schedule, out.Family, out.Start = "few", api.Family{Basis: basis.KindNone}, start
	if start == nil || start.Labels == nil {
		out.PlanNumbers = numbers
		return
	}
	out.Classes = []api.PlanClass{{Labels: append([]int32{-1}, start.Labels...), PlanNumbers: numbers}}
}

// ExplainBudget returns the error of a search whose network makes a number of evaluations for each of a sample.
func ExplainBudget(err error, each int) error {
	budget, ok := errors.AsType[*search.BudgetError](err)
	if !ok {
		return err
	}
	return api.Errorf(api.BadRequest, "budget must be at least %d evaluations here, got %d", budget.Least*each,
		budget.Budget*each).WithHint("Leave it out, or ask for fewer evaluations of a sample.")
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

// Describe describes the result of a search.
func Describe(model string, result *search.FewResult) *api.Few {
	out := &api.Few{
		Model: model, Samples: result.HeldOut, Paired: result.Paired, Stopped: result.Stopped,
		Chosen: describeTry(result.Chosen), Against: describeTry(result.Against),
	}
	out.Ratio = math.Exp(result.Gain.Change)
	out.RatioStderr = out.Ratio * result.Gain.Stderr
	if mean := result.Gain.Mean; mean != nil {
		out.MeanRatio = math.Exp(mean.Change)
		out.MeanRatioStderr = out.MeanRatio * mean.Stderr
	}
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
		Solver: c.Solver, NFE: c.Plan.NFE, SigmaMax: c.SigmaMax, Start: api.StartStandard, Levels: c.Levels,
		Samples: c.Samples, FewDistances: describeDistances(c.Distances), ODEError: c.ODEError,
	}
	switch {
	case c.Matched:
		out.Start = api.StartMatched
	case c.Deviation != 0:
		out.Start, out.Deviation, out.Analytical = api.StartScaled, c.Deviation, c.Analytical
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
