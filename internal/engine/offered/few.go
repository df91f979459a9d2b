package offered

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
	"github.com/anisoflight/anisoflight/internal/engine/schedules"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

const (
	// mostNumbers limits the values of all images of a client, and answerValues those of an answer with values for each
	// row.
	mostNumbers  = 1 << 29
	answerValues = 1 << 22
	// mostMeasured limits the images whose features the client computes.
	mostMeasured = 10_000
)

// check returns the first reason why the search could not begin.
func (s *session) check() error {
	if n := len(s.req.Levels); n > 0 && n < search.LeastLevels {
		return api.Errorf(api.BadRequest, "levels must be at least %d noise levels, got %d", search.LeastLevels, n)
	}
	if s.req.Images == 0 {
		return nil
	}
	if s.req.Learn && !slices.Contains(s.req.Solvers, solver.FittedName) {
		return api.ErrLearnWithoutFit()
	}
	if err := schedules.CheckMeasurable("the client", s.req.Shape[0], s.req.Shape[1], s.req.Shape[2]); err != nil {
		return err
	}
	if most := mostNumbers / s.size(); s.req.Images > most {
		return api.Errorf(api.TooLarge, "%d images of %d values are too many", s.req.Images, s.size()).
			WithHint("Give at most %d: as many as that say enough of their law.", most)
	}
	return nil
}

// size returns the number of values of an image.
func (s *session) size() int { return s.req.Shape[0] * s.req.Shape[1] * s.req.Shape[2] }

// work searches. If the client leaves, the best sampler so far is the result.
func (s *session) work(ctx context.Context) (err error) {
	progress := search.NewProgress(func(part string, done, total int) {
		s.done, s.total, s.part = done, total, part
	})
	highest := s.known.T()
	if most := s.known.Max; most > 0 { // also above EDM's, since a client's data may have any scale
		highest = most * most
	}
	set := search.Settings{
		NFE: s.req.NFE, Solvers: s.req.Solvers, Samples: s.req.Samples, Budget: s.req.Budget / s.req.Each,
		Seed: s.req.Seed, G0: s.known.G0(), T: highest, Times: s.req.Times, Levels: s.req.Levels,
		Learn: s.req.Learn, Label: schedules.Labels(nil, s.req.Labels, s.req.Seed), Progress: progress,
		Planned: func(evaluations int) { s.evaluations = evaluations },
	}
	if s.req.Images > 0 {
		err = s.searchWithImages(ctx, set)
	} else {
		s.found, err = search.Paired(ctx, s, set)
	}
	if budget, ok := errors.AsType[*search.BudgetError](err); ok {
		budget.Budget, budget.Least = s.req.Budget, budget.Least*s.req.Each
		return api.Errorf(api.BadRequest, "%s", budget.Error()).
			WithHint("Leave it out, or ask for fewer evaluations of a sample.")
	}
	if err != nil {
		return err
	}
	s.seconds = progress.Seconds()
	return s.describe()
}

// searchWithImages searches with the images of the client, which it sends first.
func (s *session) searchWithImages(ctx context.Context, set search.Settings) error {
	progress := set.Progress
	progress.Begin("images", search.ShareOfImages, 0)
	if err := s.fetch(progress.At); err != nil {
		return err
	}
	images, err := search.MeasureImages(ctx, s.images, progress.At)
	if _, flat := errors.AsType[*search.ImagesError](err); err != nil && !(flat && s.req.Features > 0) {
		return err
	}
	if err := s.keepLaw(images.Start); err != nil {
		return err
	}
	if s.req.Features > 0 {
		if images.References, err = s.features(); err != nil {
			return err
		}
	}
	set.Label = schedules.Labels(s.images, s.req.Labels, s.req.Seed)
	s.found, err = search.Few(ctx, s, images, set)
	return err
}

// fetch asks for the images and their labels.
func (s *session) fetch(report func(done, total int)) error {
	n, size := s.req.Images, s.size()
	im := data.Images{
		Height: s.req.Shape[0], Width: s.req.Shape[1], Channels: s.req.Shape[2], Float32: make([]float32, 0, n*size),
	}
	bounded := true
	err := s.byRows("images", n, size, func(values []float64) {
		for _, v := range values {
			im.Float32 = append(im.Float32, float32(v))
			bounded = bounded && v >= -1 && v <= 1
		}
		report(len(im.Float32)/size, 2*n)
	})
	if err != nil {
		return err
	}
	if s.req.Labelled {
		var bad error
		err := s.byRows("labels", n, 1, func(values []float64) {
			for _, v := range values {
				if v != float64(int32(v)) || v < -1 || int(v) >= s.req.Labels {
					bad = api.Errorf(api.BadTensor, "A label is %g, and there are %d conditions", v, s.req.Labels)
				}
				im.Labels = append(im.Labels, int32(v))
			}
		})
		if err = cmp.Or(bad, err); err != nil {
			return err
		}
	}
	if !bounded {
		im.Normalization, err = normalization.New(nil, nil, im.Channels)
	}
	if err == nil {
		s.images, err = data.New(im)
	}
	return err
}

// features returns the reference of the client's features of its images, evenly spaced.
func (s *session) features() ([]*frechet.Reference, error) {
	all := search.NewParts(search.BiasParts, frechet.Given("features", s.req.Features))
	n := min(s.req.Images, mostMeasured)
	err := s.byRows("features", n, s.req.Features, func(values []float64) { all.Add(0, narrow(values), nil) })
	if err != nil {
		return nil, err
	}
	out, err := search.ReferencesOf(all)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The features of the images serve no comparison: %w", err)
	}
	return out, nil
}

// byRows asks for values of n images, evenly spaced among all.
func (s *session) byRows(ask string, n, each int, use func(values []float64)) error {
	part := max(1, answerValues/each)
	for from := 0; from < n; from += part {
		rows := min(part, n-from)
		q := passes.Question{Labels: make([]int32, rows), Noise: make([]uint64, rows)}
		for i := range rows {
			q.Images = append(q.Images, int64(from+i)*int64(s.req.Images)/int64(n))
		}
		values, err := s.put(question{batch: batchOf(q), meta: s.status(ask), wants: rows * each})
		if err != nil {
			return err
		}
		use(values)
	}
	return nil
}

// describe makes the plan of the sampler that was chosen.
func (s *session) describe() error {
	chosen := s.found.Chosen
	p, err := solver.New(chosen.Settings, chosen.Schedule, 0)
	if err != nil {
		return err
	}
	tails, err := solver.Tails(chosen.Settings, chosen.Schedule, 0)
	if err != nil {
		return err
	}
	numbers := withoutParts(sampling.Numbers(p, tails))
	s.plan = s.planOf(p, numbers, s.found.Start != nil)
	s.plan.Solver = chosen.Settings.Solver
	return nil
}

// planOf describes a plan as PlanSampler does, from the start of the images if matched, or else from noise.
func (s *session) planOf(p *solver.Plan, numbers api.PlanNumbers, matched bool) *api.Plan {
	out := sampling.DescribePlan(p)
	out.Schedule, out.Family, out.Solver, out.PlanNumbers = "few", api.Family{Basis: basis.KindNone}, "few", numbers
	if !matched {
		return &out
	}
	if out.Start = s.start; s.start.Labels != nil {
		labels := append([]int32{-1}, s.start.Labels...)
		out.PlanNumbers = api.PlanNumbers{}
		out.Classes = []api.PlanClass{{Labels: labels, PlanNumbers: numbers}}
	}
	return &out
}

// keepLaw encodes the law of the images for the client.
func (s *session) keepLaw(law *start.Start) error {
	file, err := checkpoint.StartFile.Encode(law)
	if err != nil {
		return err
	}
	hash, err := checkpoint.StartFile.Hash(law)
	s.law, s.start = base64.StdEncoding.EncodeToString(file), catalog.DescribeStart(law, hash)
	return err
}

// withoutParts returns a plan without parts if all parts have the same coefficients, and n if not.
func withoutParts(n api.PlanNumbers) api.PlanNumbers {
	if n.Coordinates == nil {
		return n
	}
	var alphas []*[]float64
	var betas []*[][]float64
	for i := range n.Stages {
		alphas, betas = append(alphas, &n.Stages[i].Alpha), append(betas, &n.Stages[i].Beta)
	}
	for _, tail := range n.Tails {
		for i := range tail {
			alphas, betas = append(alphas, &tail[i].Alpha), append(betas, &tail[i].Beta)
		}
	}
	for k, alpha := range alphas {
		for part, a := range *alpha {
			if beta := *betas[k]; a != (*alpha)[0] || !slices.Equal(beta[part], beta[0]) {
				return n
			}
		}
	}
	n.Coordinates = nil
	for k := range alphas {
		*alphas[k], *betas[k] = (*alphas[k])[:1], (*betas[k])[:1]
	}
	return n
}

// result describes what was found.
func (s *session) result() map[string]any {
	if s.plan == nil {
		return map[string]any{"complete": false}
	}
	report := schedules.DescribeFew("", s.images == nil, s.found)
	report.Seconds = s.seconds
	out := map[string]any{"complete": !s.found.Stopped, "plan": s.plan, "few": report}
	if s.found.Start != nil {
		out["law"] = s.law
	}
	return out
}

// Shape implements [sampler.Ensemble].
func (s *session) Shape() (h, w, c int) {
	return s.req.Shape[0], s.req.Shape[1], s.req.Shape[2]
}

// Statistics implements [sampler.Ensemble].
func (s *session) Statistics(ctx context.Context, T float64, of *gaussian.Spectrum, report func(done, total int),
) (*local.Statistics, error) {
	return passes.AskStatistics(ctx, s, s.images, s.known, passes.GeodesicSettings{
		T: T, Spectrum: of, Progress: report,
	})
}

// Follow implements [sampler.Ensemble]. If numbers come back for each row, the rows are asked for in parts.
func (s *session) Follow(_ context.Context, t sampler.Trajectories, reducers ...sampler.Reducer) error {
	var reductions []sampler.Reduction
	var reduce []api.Reduction
	each, all := 0, 0 // numbers of a row, and others
	for _, r := range reducers {
		one := r.Begin(s.size())
		reductions, reduce = append(reductions, one), append(reduce, s.describeReduction(one))
		each, all = each+one.PerRow, all+one.Sums
	}
	n := len(t.Labels)
	part := n
	if all == 0 {
		part = min(n, max(1, answerValues/each))
	}
	p := s.planOf(t.Plan, sampling.Numbers(t.Plan, nil), t.Start != nil)
	for from := 0; from < n; from += part {
		rows := min(part, n-from)
		meta := s.status("follow", "plan", p, "reduce", reduce, "evaluations", s.evaluations)
		if t.From != nil {
			meta["from"], meta["of"] = t.At, s.number(t.From)
		}
		if t.Start != nil && !s.lawSent {
			s.lawSent, meta["law"] = true, s.law
		}
		values, err := s.put(question{
			batch: s.latents(t, from, rows), meta: meta, wants: rows*each + all, anyNumber: true,
		})
		if err != nil {
			return err
		}
		for _, r := range reductions {
			n := rows*r.PerRow + r.Sums
			r.Use(values[:n])
			values = values[n:]
		}
		if t.Progress != nil {
			t.Progress(rows * t.Plan.NFE)
		}
	}
	return nil
}

// latents returns some rows of trajectories as a batch.
func (s *session) latents(t sampler.Trajectories, from, n int) *api.Batch {
	q := passes.Question{Images: make([]int64, n), Labels: t.Labels[from:][:n]}
	for i := range n {
		q.Noise = append(q.Noise, t.Seed+uint64(from+i))
	}
	return batchOf(q)
}

// describeReduction describes a reducer for the client.
func (s *session) describeReduction(r sampler.Reduction) api.Reduction {
	out := api.Reduction{
		Kind: r.Kind, Every: r.Every, StateIndex: r.StateIndex, FirstRow: r.FirstRow, Column: r.Column, Terms: r.Terms,
		Split: r.Split,
	}
	if r.Kind == "features" && s.req.Features == 0 {
		out.Kind = "samples"
	}
	if r.States != nil {
		out.StatesID = s.number(r.States)
	}
	if by := r.Coordinates; by != nil {
		out.Coordinates = &api.PlanCoordinates{
			Height: by.H, Width: by.W, Channels: by.C, Bands: by.N, Axes: by.Axes[by.Row],
		}
	}
	return out
}

// number returns the number of states, which are numbered in order of use.
func (s *session) number(states *sampler.States) int {
	if s.states == nil {
		s.states = map[*sampler.States]int{}
	}
	if _, ok := s.states[states]; !ok {
		s.states[states] = len(s.states)
	}
	return s.states[states]
}

func narrow(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}
