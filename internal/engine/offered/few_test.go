package offered_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/offered"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

var schema = api.Schema{Columns: []api.Column{{Name: "values", Type: api.Float64}}}

// client is a client whose network is an exact mixture on the host.
type client struct {
	t      *testing.T
	m      *ensembletest.Mixture
	images *data.Dataset
	x      *api.Exchange
	law    *start.Start
	states *sampler.States
	last   api.Event
	asked  map[string]int
}

func offer(t *testing.T, m *ensembletest.Mixture, images *data.Dataset, request string) *client {
	t.Helper()
	var req api.OfferNetwork
	if err := api.DecodeRequest([]byte(request), &req); err != nil {
		t.Fatal(err)
	}
	x, err := offered.Open(t.Context(), req, schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return &client{t: t, m: m, images: images, x: x, asked: map[string]int{}}
}

func (c *client) take(e api.Event) error {
	c.last = e
	return nil
}

// answerAll answers until nothing more is asked, or a number of questions, and returns the last message.
func (c *client) answerAll(most int) map[string]any {
	c.t.Helper()
	if err := c.x.Begin(c.t.Context(), c.take); err != nil {
		c.t.Fatal(err)
	}
	for ; c.last.Meta["event"] != "found"; most-- {
		if most == 0 {
			end, err := c.x.End(c.t.Context())
			if err != nil {
				c.t.Fatal(err)
			}
			return end
		}
		values := c.answer()
		half := len(values) / 2 // in two messages, of which the first is not all
		for _, part := range [][]float64{values[:half], values[half:]} {
			if len(part) == 0 {
				continue
			}
			if err := c.x.Do(c.t.Context(), api.Batch{Rows: len(part), Cols: []any{part}}, c.take); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	return c.last.Meta
}

func (c *client) answer() (values []float64) {
	c.t.Helper()
	meta, cols := c.last.Meta, c.last.Batch.Cols
	ask := meta["ask"].(string)
	c.asked[ask]++
	switch ask {
	case "images":
		image := make([]float32, c.images.Pixels())
		for _, i := range cols[0].([]int64) {
			if err := c.images.Image(int(i), false, image); err != nil {
				c.t.Fatal(err)
			}
			values = append(values, wide(image)...)
		}
	case "follow":
		return c.follow(cols)
	default:
		c.t.Fatalf("asked for %q", ask)
	}
	return values
}

// follow is the formula of a plan, with the reducers that are asked for.
func (c *client) follow(cols []any) (values []float64) {
	c.t.Helper()
	meta := c.last.Meta
	if file, ok := meta["law"].(string); ok {
		raw, err := base64.StdEncoding.DecodeString(file)
		if err == nil {
			c.law, err = checkpoint.StartFile.Decode(raw)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	file := meta["plan"].(*api.Plan)
	plan := &solver.Plan{
		Init: file.Init, T: file.T, NFE: file.NFE, History: file.History, States: file.States,
		Data: file.Predicts == api.PredictsDenoised,
	}
	for _, s := range file.Stages {
		plan.Stages = append(plan.Stages, solver.Stage(s))
	}
	if own := file.Coordinates; own != nil {
		plan.Coordinates = &solver.Coordinates{
			Bands: basis.Bands{H: own.Height, W: own.Width, C: own.Channels, N: own.Bands}, Axes: [][]float64{own.Axes},
		}
	}
	t := sampler.Trajectories{Plan: plan, Seed: cols[2].([]uint64)[0], Labels: cols[1].([]int32)}
	if file.Start != nil {
		t.Start = c.law
	}
	if at, ok := meta["from"].(int); ok {
		t.From, t.At = c.states, at
	}
	var into []sampler.Reducer
	var answers []func() []float64
	for _, r := range meta["reduce"].([]api.Reduction) {
		reducer, answer := c.reducer(r, len(plan.Stages))
		into, answers = append(into, reducer), append(answers, answer)
	}
	if err := c.m.Follow(c.t.Context(), t, into...); err != nil {
		c.t.Fatal(err)
	}
	for _, answer := range answers {
		values = append(values, answer()...)
	}
	return values
}

// reducer returns a reducer and what gives its numbers.
func (c *client) reducer(r api.Reduction, stages int) (sampler.Reducer, func() []float64) {
	switch r.Kind {
	case "states":
		c.states = &sampler.States{Every: r.Every}
		return c.states, func() []float64 { return []float64{0} }
	case "products":
		products := &sampler.Products{Stages: stages}
		return products, func() []float64 { return products.Sums }
	case "samples":
		samples := &sampler.Samples{}
		return samples, func() []float64 { return wide(*samples) }
	case "error":
		errs := &sampler.Errors{}
		if r.StateIndex >= 0 {
			errs = &sampler.Errors{States: c.states, At: r.StateIndex, First: r.FirstRow}
		}
		return errs, func() []float64 { return errs.Squares }
	case "gram":
		var of *solver.Coordinates
		if own := r.Coordinates; own != nil {
			bands := basis.Bands{H: own.Height, W: own.Width, C: own.Channels, N: own.Bands}
			of = &solver.Coordinates{Bands: bands, Axes: [][]float64{own.Axes}}
		}
		gram := sampler.NewGram(of, stages, r.Terms, c.states, r.StateIndex, r.Split)
		return gram, func() (sums []float64) {
			for _, part := range slices.Concat(gram.Sums[:]...) {
				sums = append(sums, part.Sums()...)
			}
			return sums
		}
	}
	c.t.Fatalf("no reducer %q", r.Kind)
	return nil, nil
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// inUnits returns images as fields in units of their own, which are not cut to [−1, 1].
func inUnits(t *testing.T, d *data.Dataset) *data.Dataset {
	t.Helper()
	im := data.Images{Height: d.Height(), Width: d.Width(), Channels: d.Channels()}
	one := make([]float32, d.Pixels())
	for i := range d.Len() {
		if err := d.Image(i, false, one); err != nil {
			t.Fatal(err)
		}
		im.Float32 = append(im.Float32, one...)
	}
	var err error
	if im.Normalization, err = normalization.New(nil, nil, im.Channels); err != nil {
		t.Fatal(err)
	}
	if d, err = data.New(im); err != nil {
		t.Fatal(err)
	}
	return d
}

// A search by questions and answers is the search: the same tries with the same distances, and the plan of its choice.
func TestOfferedSearchIsTheSearch(t *testing.T) {
	m := ensembletest.Smooth(4, 2)
	images := inUnits(t, m.Data(t, 200))
	none := func(int, uint64) int32 { return -1 }
	law, err := search.MeasureImages(t.Context(), images, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	solvers := []string{"ipndm", "dpmpp2m"}
	var known []float64 // to which the search with images keeps, without statistics of the denoiser
	for k := range 64 {
		known = append(known, 80*math.Pow(0.002/80, float64(k)/63))
	}
	levels, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	among, err := search.Few(t.Context(), m, law, search.Settings{
		NFE: 3, Solvers: solvers, Samples: 64, G0: 1e-9, T: 6400, Label: none, Levels: known,
	})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := search.Paired(t.Context(), m, search.Settings{
		NFE: 5, Solvers: solvers, G0: 1e-9, T: 6400, Label: none, Learn: new(bool), Budget: 4500,
	})
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]*search.FewResult{
		`{"shape":[4,4,1],"images":200,"nfe":3,"samples":64,"solvers":["ipndm","dpmpp2m"],"levels":` + string(levels) +
			`}`: among,
		`{"shape":[4,4,1],"nfe":5,"budget":4500,"learn":false,"solvers":["ipndm","dpmpp2m"]}`: alone,
	} {
		c := offer(t, m, images, request)
		end := c.answerAll(-1)
		if end["complete"] != true {
			t.Fatalf("%s: %v", request, end)
		}
		file := end["plan"].(*api.Plan)
		got := file.Info.(*api.Few)
		if len(got.Tries) != len(want.Tries) || math.Abs(got.Ratio-math.Exp(want.Gain.Change)) > 1e-9 {
			t.Fatalf("%s: %d tries and a ratio of %g, want %d and %g", request, len(got.Tries), got.Ratio, len(want.Tries),
				math.Exp(want.Gain.Change))
		}
		for i, try := range got.Tries {
			own := try.FewDistances
			for k, v := range []float64{own.Frequencies, own.Edges, own.Responses}[:len(want.Tries[i].Distances)] {
				if len(want.Tries[i].Distances) == 1 {
					v = own.Distance
				}
				if w := want.Tries[i].Distances[k]; math.Abs(v-w) > 1e-9*w || try.Solver != want.Tries[i].Solver {
					t.Errorf("%s: try %d is %+v, want %s at %v", request, i, try, want.Tries[i].Solver,
						want.Tries[i].Distances)
				}
			}
		}
		plan := want.Chosen.Plan
		numbers := file.PlanNumbers
		if file.Classes != nil {
			numbers = file.Classes[0].PlanNumbers
		}
		if file.NFE != plan.NFE || !reflect.DeepEqual(numbers.T, plan.T) || !reflect.DeepEqual(numbers.Init, plan.Init) ||
			(file.Start != nil) != (want.Start != nil) || (file.Law != nil) != (want.Start != nil) ||
			len(numbers.Tails) == 0 {
			t.Errorf("%s: the plan is %+v, want %+v", request, file, plan)
		}
		if text, err := json.Marshal(end); err != nil || strings.Contains(string(text), "NaN") {
			t.Errorf("%s: it travels as %s, %v", request, text, err)
		}
	}
}

// A client that ends has the best so far, or an error if nothing was measured.
func TestOfferedSearchEndsEarly(t *testing.T) {
	m := ensembletest.Smooth(4, 2)
	c := offer(t, m, nil, `{"shape":[4,4,1],"nfe":5,"budget":4500}`)
	end := c.answerAll(12)
	if end["complete"] != false || end["plan"] == nil || len(end["plan"].(*api.Plan).Info.(*api.Few).Tries) != 11 {
		t.Errorf("after twelve answers: %v", end)
	}
	c = offer(t, m, nil, `{"shape":[4,4,1],"nfe":5,"budget":4500}`)
	if err := c.x.Begin(t.Context(), c.take); err != nil {
		t.Fatal(err)
	}
	if _, err := c.x.End(t.Context()); !errors.Is(err, sampler.ErrLeft) {
		t.Errorf("after no answer: %v", err)
	}
}

// What cannot be is refused before anything is asked.
func TestOfferedRequestsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		body string
		code api.Code
		says string
	}{
		{`{"shape":[8,8,1]}`, api.BadRequest, "nfe must"},
		{`{"nfe":5}`, api.BadRequest, "shape must be [H, W, C]"},
		{`{"nfe":5,"shape":[8,0,1]}`, api.BadRequest, "shape must hold positive sizes"},
		{`{"nfe":5,"shape":[8,8,1],"kind":"learned"}`, api.BadRequest, "kind"},
		{`{"nfe":5,"shape":[8,8,1],"images":-1}`, api.BadRequest, "images must"},
		{`{"nfe":5,"shape":[8,8,64],"images":200000}`, api.TooLarge, "200000 images"},
		{`{"nfe":5,"shape":[8,8,1],"sigma_min":2,"sigma_max":1}`, api.BadRequest, "sigma_min and sigma_max"},
		{`{"nfe":5,"shape":[8,8,1],"times":[1,2]}`, api.BadRequest, "times must be noise levels that fall"},
		{`{"nfe":5,"shape":[8,8,1],"levels":[2,1]}`, api.BadRequest, "levels must be at least 40"},
		{`{"nfe":5,"shape":[8,8,1],"solvers":["fitted"]}`, api.BadRequest, "gone since 0.1"},
	} {
		var req api.OfferNetwork
		err := api.DecodeRequest([]byte(c.body), &req)
		if err == nil {
			_, err = offered.Open(t.Context(), req, schema)
		}
		if code := api.ErrorOf(err).Code; code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s: %s", c.body, err, c.code, c.says)
		}
	}
}

// An answer that cannot be is refused, and the question stays open.
func TestOfferedAnswersThatCannotBe(t *testing.T) {
	m := ensembletest.Smooth(4, 2)
	images := m.Data(t, 64)
	c := offer(t, m, images, `{"shape":[4,4,1],"images":64,"nfe":3,"samples":64,"solvers":["ipndm"]}`)
	if err := c.x.Begin(t.Context(), c.take); err != nil {
		t.Fatal(err)
	}
	say := func(values ...float64) error {
		return c.x.Do(t.Context(), api.Batch{Rows: len(values), Cols: []any{values}}, c.take)
	}
	for what, values := range map[string][]float64{
		"NaN": {1, math.NaN()}, "infinite": {math.Inf(1)}, "too many": make([]float64, 64*16+1),
	} {
		if err := say(values...); api.ErrorOf(err).Code != api.BadTensor {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := say(c.answer()...); err != nil || c.last.Meta["ask"] != "residuals" {
		t.Errorf("after the images: %v, %v", c.last.Meta, err)
	}
}
