package offered

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/plans"
	"github.com/anisoflight/anisoflight/internal/engine/schedules"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
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
		Seconds: s.req.Seconds,
		Seed:    s.req.Seed, G0: s.known.G0(), T: highest, Times: s.req.Times, Levels: s.req.Levels,
		Learn: s.req.Learn, Label: plans.Labels(nil, s.req.Labels, s.req.Seed), Progress: progress,
		LearnGuidance: s.req.LearnGuidance != nil && *s.req.LearnGuidance,
		Planned:       func(evaluations int) { s.evaluations = evaluations },
	}
	if s.req.Images > 0 {
		err = s.searchWithImages(ctx, set)
	} else {
		s.found, err = search.Paired(ctx, s, set)
	}
	if err != nil {
		return plans.ExplainBudget(err, s.req.Each)
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
	images, err := search.MeasureImages(ctx, s.images, s.req.Labels > 0, progress.At)
	if _, flat := errors.AsType[*search.ImagesError](err); err != nil && !(flat && s.req.Features > 0) {
		return err
	}
	law, start, err := plans.DescribeLaw(images.Start)
	if err != nil {
		return err
	}
	s.law, s.start = base64.StdEncoding.EncodeToString(law), start
	if s.req.Features > 0 {
		if images.References, err = s.features(); err != nil {
			return err
		}
		images.Held = images.References
	}
	set.Label = plans.Labels(s.images, s.req.Labels, s.req.Seed)
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
	p, err := plans.PlanOf(s.found)
	if err != nil {
		return err
	}
	report := plans.Describe("", s.found)
	report.Seconds = s.seconds
	p.Info = report
	s.plan = &p
	return nil
}

// planOf describes a plan as PlanSampler does, from the start of the images if matched, or else from noise.
func (s *session) planOf(p *solver.Plan, matched bool) *api.Plan {
	out := catalog.DescribePlan(p)
	out.Solver = "few"
	var start *api.StartInfo
	if matched {
		start = s.start
	}
	plans.Complete(&out, catalog.Numbers(p, nil), start)
	return &out
}

// result describes what was found.
func (s *session) result() map[string]any {
	if s.plan == nil {
		return map[string]any{"complete": false}
	}
	return map[string]any{"complete": !s.found.Stopped, "plan": s.plan}
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
	p := s.planOf(t.Plan, t.Start != nil)
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
