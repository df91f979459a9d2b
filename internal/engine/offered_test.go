package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// white is a client with the optimal denoiser of N(0, v I) on images of so many values, which answers in the mean: its
// residual is dims·v/(v+g), and the loss depends on g as that does.
type white struct {
	v    float64
	dims float64
}

func (w white) answer(names []any, e api.Event) api.Batch {
	g, omega := e.Batch.Cols[4].([]float64), e.Batch.Cols[5].([]float64)
	var values []float64
	for _, name := range names {
		col := make([]float64, len(g))
		for i := range col {
			switch name {
			case "residual":
				col[i] = w.dims * w.v / (w.v + g[i])
			case "backprop", "explicit":
				col[i] = -omega[i] * w.dims * w.v / math.Pow(w.v+g[i], 2)
			}
		}
		values = append(values, col...)
	}
	return valuesOf(values)
}

func valuesOf(values []float64) api.Batch { return api.Batch{Rows: len(values), Cols: []any{values}} }

// answers is the schema of what a client answers.
var answers = api.Schema{Columns: []api.Column{{Name: "values", Type: api.Float64}}}

// asked is the client's side of an OfferNetwork.
type asked struct {
	t    *testing.T
	x    *api.Exchange
	last api.Event // that was emitted
}

func offer(t *testing.T, e *Engine, body string) *asked {
	t.Helper()
	x, err := openExchange(t.Context(), e, "OfferNetwork", body, answers)
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{t: t, x: x}
	if err := x.Begin(t.Context(), a.take); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *asked) take(e api.Event) error {
	a.last = e
	return nil
}

// terms are those that are asked for; nil at the end.
func (a *asked) terms() []any {
	var out []any
	names, _ := a.last.Meta["terms"].([]string)
	for _, name := range names {
		out = append(out, name)
	}
	return out
}

// answer answers n questions, or all for −1.
func (a *asked) answer(by white, n int) {
	a.t.Helper()
	for ; n != 0 && a.last.Meta["event"] != "stored"; n-- {
		if err := a.x.Do(a.t.Context(), by.answer(a.terms(), a.last), a.take); err != nil {
			a.t.Fatal(err)
		}
	}
}

// TestOfferedGeodesic: the residuals of a denoiser in closed form give the schedule of least energy in closed form.
func TestOfferedGeodesic(t *testing.T) {
	e := open(t)
	a := offer(t, e, `{"name":"r","kind":"geodesic","shape":[8,8,1],"images":7,"T":100,"points":400,"samples":1,
		"batch":64,"c":0.25,"order":1}`)
	if cols := a.last.Batch.Cols; len(cols[0].([]int64)) != 64 || slices.Max(cols[0].([]int64)) > 6 {
		t.Errorf("the first question is %v", cols)
	}
	a.answer(white{0.25, 64}, -1)
	end, err := a.x.End(t.Context())
	a.x.Close()
	if err != nil || end["complete"] != true {
		t.Fatalf("at the end %v, %v", end, err)
	}
	// F = 64 v/(g (v+g)²): the speed ġ √F is constant where √g ∝ √v tan(…), so arctan √(g/v) is linear in t.
	got := act(t, e, "ExportSchedule", `{"schedule":"r"}`)
	if kind := got["provenance"].(map[string]any)["kind"]; kind != "geodesic" {
		t.Errorf("the provenance is %v", kind)
	}
	job, err := e.Prepare(t.Context(), called(t, e, "EvaluateSchedule", `{"schedule":"r","t":[25,50,75]}`))
	if err != nil {
		t.Fatal(err)
	}
	table, err := collect(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range column[float64](table, "g") {
		want := 0.25 * math.Pow(math.Tan(float64(i+1)/4*math.Atan(math.Sqrt(100/0.25))), 2)
		if math.Abs(math.Log(g/want)) > 0.05 {
			t.Errorf("g at %d T/4 is %g, want %g", i+1, g, want)
		}
	}
}

// TestOfferedLearning: descent towards that optimum lowers the loss; what is learned is stored as a schedule with its
// provenance, and sampled along.
func TestOfferedLearning(t *testing.T) {
	e := open(t)
	a := offer(t, e, `{"name":"r","shape":[8,8,1],"counts":[5,6,4],"T":100,"knots":8,"init":"log-linear",
		"batch":64,"kimg":5.12,"c":0.25,"schedule_lr":0.05,"seed":3}`)
	for i, image := range a.last.Batch.Cols[0].([]int64) {
		label := a.last.Batch.Cols[1].([]int32)[i]
		if lo, hi := []int64{0, 5, 11}[label], []int64{5, 11, 15}[label]; image < lo || image >= hi {
			t.Fatalf("image %d has the label %d", image, label)
		}
	}
	a.answer(white{0.25, 64}, 1)
	first := a.last.Meta["row"].(map[string]any)["energy"].(float64)
	a.answer(white{0.25, 64}, -1)
	last := a.last
	if last.Meta["event"] != "stored" || last.Meta["steps"] != int64(80) || last.Batch != nil {
		t.Errorf("at the end %v", last.Meta)
	}
	err := a.x.Do(t.Context(), valuesOf([]float64{1}), a.take)
	wantCode(t, "an answer to no question", err, api.BadRequest)
	a.x.Close()
	info := act(t, e, "ExportSchedule", `{"schedule":"r"}`)["provenance"].(map[string]any)
	if info["kind"] != "learned" || info["steps"] != 80.0 || info["stage"] != "isotropic" || info["model"] != nil {
		t.Errorf("the provenance is %v", info)
	}
	after := a.last.Meta["row"].(map[string]any)["energy"].(float64)
	if moved := info["moved"].(map[string]any); info["energy_after"] != nil || !(moved["log_g"].(float64) > 1) {
		t.Errorf("the provenance is %v", info)
	}
	if bound := math.Pow(2*math.Sqrt(64)*math.Atan(math.Sqrt(100/0.25)), 2); after > 0.7*first || after < 0.99*bound {
		t.Errorf("the energy went from %g to %g, the bound is %g", first, after, bound)
	}
	if _, err := sampleAll(t, e, `{"model":"tiny","schedule":"r","n":1,"steps":2}`); err != nil {
		t.Error(err)
	}
}

// TestOfferedEndsEarly: whoever leaves, by the end of the stream, by an answer that cannot be or by vanishing, the
// steps taken are stored; of a geodesic that is not done, nothing.
func TestOfferedEndsEarly(t *testing.T) {
	e := open(t)
	const learned = `{"name":%q,"shape":[8,8,1],"images":9,"batch":4,"kimg":4,"estimator":"explicit"}`
	steps := func(name string) float64 {
		t.Helper()
		file := act(t, e, "ExportSchedule", fmt.Sprintf(`{"schedule":%q}`, name))
		return file["provenance"].(map[string]any)["steps"].(float64)
	}
	a := offer(t, e, fmt.Sprintf(learned, "ended"))
	a.answer(white{1, 64}, 3)
	end, err := a.x.End(t.Context())
	a.x.Close()
	if err != nil || end["complete"] != false || end["steps"] != int64(3) || steps("ended") != 3 {
		t.Errorf("a client that ends: %v, %v", end, err)
	}

	b := offer(t, e, fmt.Sprintf(learned, "wrong"))
	b.answer(white{1, 64}, 2)
	for what, values := range map[string][]float64{
		"NaN":      {1, math.NaN()},
		"infinite": {math.Inf(1)},
		"too many": make([]float64, 9),
	} {
		wantCode(t, what, b.x.Do(t.Context(), valuesOf(values), b.take), api.BadTensor)
	}
	if err := b.x.Do(t.Context(), valuesOf([]float64{1, -1, 1}), b.take); err != nil {
		t.Errorf("a part of an answer: %v", err)
	}
	err = b.x.Do(t.Context(), valuesOf(make([]float64, 5)), b.take)
	wantCode(t, "a negative residual", err, api.BadTensor)
	b.x.Close()
	if steps("wrong") != 2 {
		t.Errorf("%g steps are stored, want 2", steps("wrong"))
	}

	g := offer(t, e, `{"name":"half","kind":"geodesic","shape":[8,8,1],"images":9}`)
	g.answer(white{1, 64}, 1)
	if end, err := g.x.End(t.Context()); err != nil || end["complete"] != false || end["schedule"] != nil {
		t.Errorf("half a geodesic: %v, %v", end, err)
	}
	g.x.Close()
	_, err = perform(t.Context(), e, "ExportSchedule", `{"schedule":"half"}`, nil)
	wantCode(t, "half a geodesic", err, api.ScheduleNotFound)

	none := offer(t, e, `{"name":"unbegun","shape":[8,8,1],"images":9}`)
	none.x.Close()
	_, err = perform(t.Context(), e, "ExportSchedule", `{"schedule":"unbegun"}`, nil)
	wantCode(t, "no step", err, api.ScheduleNotFound)
}

// TestOfferedRequests: what cannot be is refused before anything is asked.
func TestOfferedRequests(t *testing.T) {
	e := open(t)
	act(t, e, "MakeSchedule", `{"name":"taken","kind":"edm"}`)
	const whole = `{"name":"r","shape":[8,8,1],"images":3`
	for body, want := range map[string]struct { // beside what is whole
		code api.Code
		says string
	}{
		`{"name":"taken","shape":[8,8,1],"images":3}`: {api.NameTaken, "taken"},
		`{"name":"r","images":3}`:                     {api.BadRequest, "shape must be [H, W, C]"},
		`{"name":"r","shape":[8,8,1]}`:                {api.BadRequest, "images must lie between"},
		`,"counts":[1,1]`:                             {api.BadRequest, "counts must add up to the 3"},
		`,"stage":"pretrain"`:                         {api.BadRequest, "stage is not a field here"},
		`,"schedule":"nobody"`:                        {api.ScheduleNotFound, "nobody"},
		`,"family":{"basis":"mine"}`:                  {api.BasisNotFound, "mine"},
		`,"kind":"geodesic","per_class":true`:         {api.BadRequest, "counts"},
		`,"kind":"geodesic","sigma_max":10,"T":200`:   {api.BadRequest, "T must lie within"},
	} {
		if body[0] != '{' {
			body = whole + body + "}"
		}
		_, err := openExchange(t.Context(), e, "OfferNetwork", body, answers)
		wantCode(t, body, err, want.code)
		if err != nil && !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v, want %q in it", body, err, want.says)
		}
	}
	other := api.Schema{Columns: []api.Column{{Name: "values", Type: api.Float32}}}
	_, err := openExchange(t.Context(), e, "OfferNetwork", whole+"}", other)
	wantCode(t, "columns of another type", err, api.BadTensor)
	x, err := openExchange(t.Context(), e, "OfferNetwork",
		`{"name":"r","shape":[8,8,1],"images":3,"family":{"basis":"dct"}}`, answers)
	if err != nil {
		t.Fatalf("two subspaces are learned with the full estimator: %v", err)
	}
	if x.Out.Metadata["estimator"] != "full" || x.Out.Metadata["subspaces"] != "2" {
		t.Errorf("the reply says %v", x.Out.Metadata)
	}
	x.Close()
}

// called decodes a request of an operation that gives rows.
func called(t *testing.T, e *Engine, op, body string) api.Call {
	t.Helper()
	call, err := e.Operations().Call(api.ByGet, op, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func sampleAll(t *testing.T, e *Engine, body string) (*rows, error) {
	t.Helper()
	job, err := e.Prepare(t.Context(), called(t, e, "Sample", body))
	if err != nil {
		return nil, err
	}
	return collect(context.WithoutCancel(t.Context()), job)
}
