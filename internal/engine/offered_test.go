package engine

import (
	"fmt"
	"math"
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
	refuse(t, e, "ExportSchedule", `{"schedule":"half"}`, api.ScheduleNotFound) // half a geodesic

	none := offer(t, e, `{"name":"unbegun","shape":[8,8,1],"images":9}`)
	none.x.Close()
	refuse(t, e, "ExportSchedule", `{"schedule":"unbegun"}`, api.ScheduleNotFound) // no step
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
		wantCode(t, body, err, want.code, want.says)
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
