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

// fewSearch is the search for an offered network, and the ensemble that samples with it.
type fewSearch struct {
	*session
	req         api.OfferedFew
	images      *data.Dataset // of the client; nil: samples are compared with converged samples
	lawSent     bool          // the client has the law
	evaluations int
	states      map[*sampler.States]int // numbers of the states that the client keeps
	found       *search.FewResult
	plan        *api.Plan
	law         string // of the images, base64 of its file
	start       *api.StartInfo
	seconds     map[string]float64
}

func (f *fewSearch) prepare(config []byte) error {
	if err := api.DecodeRequest(config, &f.req); err != nil {
		return err
	}
	if f.samples.Images == 0 {
		return nil
	}
	if f.req.Learn && !slices.Contains(f.req.Solvers, solver.FittedName) {
		return api.ErrLearnWithoutFit()
	}
	if err := schedules.CheckMeasurable("the client", f.samples.Height, f.samples.Width, f.samples.Channels); err != nil {
		return err
	}
	if most := mostNumbers / f.size(); f.samples.Images > most {
		return api.Errorf(api.TooLarge, "%d images of %d values are too many", f.samples.Images, f.size()).
			WithHint("Give at most %d: as many as that say enough of their law.", most)
	}
	return f.samples.Check()
}

// work searches. If the client leaves, the best sampler so far is the result.
func (f *fewSearch) work(ctx context.Context) (err error) {
	progress := search.NewProgress(func(part string, done, total int) {
		f.done, f.total, f.part = int64(done), int64(total), part
	})
	set := search.Settings{
		NFE: f.req.NFE, Solvers: f.req.Solvers, Samples: f.req.Samples, Budget: f.req.Budget / f.req.Each,
		Seed: f.req.Seed, G0: f.samples.Range.G0(), T: f.samples.Range.T(), Times: f.req.Times, Learn: f.req.Learn,
		Label: schedules.Labels(nil, f.req.Labels, f.req.Seed), Planned: f.plans, Progress: progress,
	}
	if f.samples.Images > 0 {
		err = f.amongImages(ctx, set)
	} else {
		f.found, err = search.Paired(ctx, f, set)
	}
	if budget, ok := errors.AsType[*search.BudgetError](err); ok {
		budget.Budget, budget.Least = f.req.Budget, budget.Least*f.req.Each
		return api.Errorf(api.BadRequest, "%s", budget.Error()).
			WithHint("Leave it out, or ask for fewer evaluations of a sample.")
	}
	if err != nil {
		return err
	}
	f.seconds = progress.Seconds()
	return f.describe()
}

// amongImages searches with the images of the client, which it sends first.
func (f *fewSearch) amongImages(ctx context.Context, set search.Settings) error {
	progress := set.Progress
	progress.Begin("images", search.ShareOfImages, 0)
	if err := f.fetch(progress.At); err != nil {
		return err
	}
	images, err := search.MeasureImages(ctx, f.images, progress.At)
	if err != nil {
		return err
	}
	if err := f.keepLaw(images.Start); err != nil {
		return err
	}
	if f.req.Features > 0 {
		if images.References, err = f.features(); err != nil {
			return err
		}
	}
	set.Label = schedules.Labels(f.images, f.req.Labels, f.req.Seed)
	f.found, err = search.Few(ctx, f, images, set)
	return err
}

// plans takes the number of evaluations to come.
func (f *fewSearch) plans(evaluations int) { f.evaluations = evaluations }

// fetch asks for the images and their labels.
func (f *fewSearch) fetch(report func(done, total int)) error {
	n, size := f.samples.Images, f.size()
	im := data.Images{
		Height: f.samples.Height, Width: f.samples.Width, Channels: f.samples.Channels, Float32: make([]float32, 0, n*size),
	}
	bounded := true
	err := f.byRows("images", n, size, func(values []float64) {
		for _, v := range values {
			im.Float32 = append(im.Float32, float32(v))
			bounded = bounded && v >= -1 && v <= 1
		}
		report(len(im.Float32)/size, 2*n)
	})
	if err != nil {
		return err
	}
	if f.req.Labelled {
		var bad error
		err := f.byRows("labels", n, 1, func(values []float64) {
			for _, v := range values {
				if v != float64(int32(v)) || v < -1 || int(v) >= f.req.Labels {
					bad = api.Errorf(api.BadTensor, "A label is %g, and there are %d conditions", v, f.req.Labels)
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
		f.images, err = data.New(im)
	}
	return err
}

// features returns the reference of the client's features of its images, evenly spaced.
func (f *fewSearch) features() ([]*frechet.Reference, error) {
	all := search.NewParts(search.BiasParts, frechet.Given("features", f.req.Features))
	n := min(f.samples.Images, mostMeasured)
	err := f.byRows("features", n, f.req.Features, func(values []float64) { all.Add(0, narrow(values), nil) })
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
func (f *fewSearch) byRows(ask string, n, each int, use func(values []float64)) error {
	part := max(1, answerValues/each)
	for from := 0; from < n; from += part {
		rows := min(part, n-from)
		q := passes.Question{J: 1, Labels: make([]int32, rows), Noise: make([]uint64, rows)}
		for i := range rows {
			q.Images = append(q.Images, int64(from+i)*int64(f.samples.Images)/int64(n))
		}
		values, err := f.put(question{batch: batchOf(q), meta: f.status(ask), wants: rows * each})
		if err != nil {
			return err
		}
		use(values)
	}
	return nil
}

// describe makes the plan of the sampler that was chosen.
func (f *fewSearch) describe() error {
	chosen := f.found.Chosen
	p, err := solver.New(chosen.Settings, chosen.Schedule, 0)
	if err != nil {
		return err
	}
	tails, err := solver.Tails(chosen.Settings, chosen.Schedule, 0)
	if err != nil {
		return err
	}
	numbers := withoutParts(sampling.Numbers(p, tails))
	f.plan = f.planOf(p, numbers, f.found.Start != nil)
	f.plan.Solver = chosen.Settings.Solver
	return nil
}

// planOf describes a plan as PlanSampler does, from the start of the images if matched, or else from noise.
func (f *fewSearch) planOf(p *solver.Plan, numbers api.PlanNumbers, matched bool) *api.Plan {
	out := sampling.DescribePlan(p)
	out.Schedule, out.Family, out.Solver, out.PlanNumbers = "few", api.Family{Basis: basis.KindNone}, "few", numbers
	if !matched {
		return &out
	}
	if out.Start = f.start; f.start.Labels != nil {
		labels := append([]int32{-1}, f.start.Labels...)
		out.PlanNumbers = api.PlanNumbers{}
		out.Classes = []api.PlanClass{{Labels: labels, PlanNumbers: numbers}}
	}
	return &out
}

// keepLaw encodes the law of the images for the client.
func (f *fewSearch) keepLaw(law *start.Start) error {
	file, err := checkpoint.StartFile.Encode(law)
	if err != nil {
		return err
	}
	hash, err := checkpoint.StartFile.Hash(law)
	f.law, f.start = base64.StdEncoding.EncodeToString(file), catalog.DescribeStart(law, hash)
	return err
}

// withoutParts returns a plan without parts if all parts have the same coefficients, and n if not.
func withoutParts(n api.PlanNumbers) api.PlanNumbers {
	equal := func(alpha []float64, beta [][]float64) bool {
		for f := range alpha {
			if alpha[f] != alpha[0] || !slices.Equal(beta[f], beta[0]) {
				return false
			}
		}
		return true
	}
	for _, s := range n.Stages {
		if n.Coordinates == nil || !equal(s.Alpha, s.Beta) {
			return n
		}
	}
	for _, tail := range n.Tails {
		for _, s := range tail {
			if !equal(s.Alpha, s.Beta) {
				return n
			}
		}
	}
	n.Coordinates = nil
	for i, s := range n.Stages {
		n.Stages[i].Alpha, n.Stages[i].Beta = s.Alpha[:1], s.Beta[:1]
	}
	for _, tail := range n.Tails {
		for i, s := range tail {
			tail[i].Alpha, tail[i].Beta = s.Alpha[:1], s.Beta[:1]
		}
	}
	return n
}

// result returns the last message.
func (f *fewSearch) result() map[string]any {
	if f.plan == nil {
		return map[string]any{"complete": false}
	}
	report := schedules.DescribeFew("", f.images == nil, f.found)
	report.Seconds = f.seconds
	out := map[string]any{"complete": !f.found.Stopped, "plan": f.plan, "few": report}
	if f.found.Start != nil {
		out["law"] = f.law
	}
	return out
}

// Shape implements [sampler.Ensemble].
func (f *fewSearch) Shape() (h, w, c int) {
	return f.samples.Height, f.samples.Width, f.samples.Channels
}

// Statistics implements [sampler.Ensemble].
func (f *fewSearch) Statistics(ctx context.Context, T float64, of *gaussian.Spectrum, report func(done, total int),
) (*local.Statistics, error) {
	return passes.AskStatistics(ctx, f, f.images, f.samples.Range, passes.GeodesicSettings{
		T: T, Spectrum: of, Progress: report,
	})
}

// Follow implements [sampler.Ensemble]. If numbers come back for each row, the rows are asked for in parts.
func (f *fewSearch) Follow(_ context.Context, t sampler.Trajectories, reducers ...sampler.Reducer) error {
	var reduce []api.Reduction
	each, all := 0, 0 // numbers of a row, and others
	for _, r := range reducers {
		one, perRow, total, err := f.reduction(r)
		if err != nil {
			return err
		}
		reduce, each, all = append(reduce, one), each+perRow, all+total
	}
	n := len(t.Labels)
	part := n
	if all == 0 {
		part = min(n, max(1, answerValues/each))
	}
	p := f.planOf(t.Plan, sampling.Numbers(t.Plan, nil), t.Start != nil)
	for from := 0; from < n; from += part {
		rows := min(part, n-from)
		meta := f.status("follow", "plan", p, "reduce", reduce, "evaluations", f.evaluations)
		if t.From != nil {
			meta["from"], meta["of"] = t.At, f.number(t.From)
		}
		if t.Start != nil && !f.lawSent {
			f.lawSent, meta["law"] = true, f.law
		}
		values, err := f.put(question{
			batch: f.latents(t, from, rows), meta: meta, wants: rows*each + all, anyNumber: true,
		})
		if err != nil {
			return err
		}
		for _, r := range reducers {
			values = f.reduce(r, values, rows)
		}
		if t.Progress != nil {
			t.Progress(rows * t.Plan.NFE)
		}
	}
	return nil
}

// latents returns some rows of trajectories as a batch.
func (f *fewSearch) latents(t sampler.Trajectories, from, n int) *api.Batch {
	q := passes.Question{J: 1, Images: make([]int64, n), Labels: t.Labels[from:][:n]}
	for i := range n {
		q.Noise = append(q.Noise, t.Seed+uint64(from+i))
	}
	return batchOf(q)
}

// reduction describes a reducer to the client, with how many numbers come back for each row and for all together.
func (f *fewSearch) reduction(r sampler.Reducer) (out api.Reduction, each, all int, err error) {
	switch r := r.(type) {
	case *sampler.Moments:
		if f.req.Features > 0 {
			return api.Reduction{Kind: "features"}, f.req.Features, 0, nil
		}
		return api.Reduction{Kind: "samples"}, f.size(), 0, nil
	case *sampler.Samples:
		return api.Reduction{Kind: "samples"}, f.size(), 0, nil
	case *sampler.States:
		return api.Reduction{Kind: "states", Of: f.number(r), Every: r.Every}, 0, 1, nil
	case *sampler.Products:
		return api.Reduction{Kind: "products"}, 0, (2*r.Stages + 1) * (2*r.Stages + 1), nil
	case *sampler.Errors:
		if r.States == nil {
			return api.Reduction{Kind: "error", At: -1}, 1, 0, nil
		}
		return api.Reduction{Kind: "error", Of: f.number(r.States), At: r.At, First: r.First}, 1, 0, nil
	case *sampler.Column:
		return api.Reduction{
			Kind: "column", Of: f.number(r.Columns.Target), At: r.Columns.At, First: r.Columns.First, Column: r.K,
		}, 0, r.K + 3, nil
	case *sampler.Gram:
		out := api.Reduction{Kind: "gram", Of: f.number(r.States), At: r.At, Terms: r.Terms, Split: r.Split}
		if r.Statistics != nil {
			b := r.Statistics.Bands()
			out.Coordinates = &api.PlanCoordinates{
				Height: b.H, Width: b.W, Channels: b.C, Bands: b.N, Axes: r.Statistics.At(0).Axes,
			}
		}
		return out, 0, 2 * len(r.Sums[0]) * (r.Terms + 1) * (r.Terms + 1), nil
	}
	return out, 0, 0, errors.New("offered: no such reducer")
}

// number returns the number of states, which are numbered in order of use.
func (f *fewSearch) number(s *sampler.States) int {
	if f.states == nil {
		f.states = map[*sampler.States]int{}
	}
	if _, ok := f.states[s]; !ok {
		f.states[s] = len(f.states)
	}
	return f.states[s]
}

// reduce gives a reducer its numbers of some rows, and returns the numbers of the next reducers.
func (f *fewSearch) reduce(r sampler.Reducer, values []float64, rows int) []float64 {
	take := func(n int) []float64 {
		numbers := values[:n]
		values = values[n:]
		return numbers
	}
	switch r := r.(type) {
	case *sampler.States:
		take(1)
	case *sampler.Products:
		r.Sums = take((2*r.Stages + 1) * (2*r.Stages + 1))
	case *sampler.Column:
		r.Sums = take(r.K + 3)
	case *sampler.Moments:
		r.Add(0, narrow(take(rows*r.Parts[0][0].Size())), nil)
	case *sampler.Samples:
		r.Add(0, narrow(take(rows*f.size())), nil)
	case *sampler.Errors:
		r.Squares = append(r.Squares, take(rows)...)
	case *sampler.Gram:
		for half := range r.Sums {
			for _, part := range r.Sums[half] {
				part.AddSums(take((r.Terms + 1) * (r.Terms + 1)))
			}
		}
	}
	return values
}

func narrow(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}
