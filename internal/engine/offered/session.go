// Package offered searches samplers and makes schedules for networks that stay with a client.
//
// A session is one exchange. The server asks the client to sample along a plan from given latents, or to evaluate the
// terms of the loss at given samples. The client does this with its network, and answers with sums or with numbers for
// each sample. Everything else is as for a network on the device.
//
// Invariants: one question at a time is open; an impossible answer is refused before anything changes; whatever ends
// the exchange, the steps taken are stored, and a search ends with the best so far.
//
// Begin reading with Maker.
package offered

import (
	"context"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/passes"
)

// session asks a client about its network, and makes a schedule or a sampler of the answers. The work is a coroutine:
// it runs from one question to the next, while the exchange waits for it.
type session struct {
	catalog *catalog.Catalog
	req     api.OfferNetwork
	samples passes.Samples
	j       int          // subspaces
	mode    kernels.Mode // of the estimator; LossOnly if residuals alone are asked for

	geodesic *passes.GeodesicSettings // of kind geodesic
	basis    *basis.Basis             // that is stored with a geodesic
	learner  *train.Remote            // of kind learned
	few      *fewSearch               // of kind few

	done, total int64  // samples, or thousandths of a search
	part        string // of a search in work
	row         map[string]any
	storedAt    time.Time         // when it was stored last, or begun
	info        *api.ScheduleInfo // nil until something is stored
	steps       int64
	complete    bool
	stopped     string // why it stopped by itself; empty if it did not

	answers  api.Schema
	next     func() (question, bool) // false when the work has ended; err is then set
	stop     func()                  // ends the work: its question has no answer
	question *question               // not yet answered
	ask      func(question) bool
	answer   []float64 // so far
	err      error
}

// question is a question to the client.
type question struct {
	batch     *api.Batch
	meta      api.Meta
	wants     int  // numbers of the answer
	anyNumber bool // infinite values and NaN are allowed: samples of a solver that fails
}

// questionBytes is more than any question has, so that each is one message.
const questionBytes = 32 << 20

// Maker makes schedules for networks that clients evaluate.
type Maker struct{ Catalog *catalog.Catalog }

// Open checks a request and the columns of the answers, and opens a session.
func (k Maker) Open(_ context.Context, req api.OfferNetwork, in api.Schema) (*api.Exchange, error) {
	if req.Kind != "few" { // before the work; storing checks it again
		if err := k.Catalog.FreeSchedule(req.Name, req.Replace); err != nil {
			return nil, err
		}
	}
	s := &session{catalog: k.Catalog, req: req, storedAt: time.Now(), answers: in, stop: func() {}}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if err := tables.CheckColumns(in, []api.Column{{Name: "values", Type: api.Float64}}, nil); err != nil {
		return nil, err
	}
	perSubspace := func(name string) api.Column {
		return api.Column{Name: name, Type: api.Float64, Kind: api.List, Shape: []int{s.j}}
	}
	out := api.Schema{
		Columns: []api.Column{
			{Name: "image", Type: api.Int64},
			{Name: "label", Type: api.Int32},
			{Name: "noise", Type: api.Uint64},
			{Name: "t", Type: api.Float64},
			perSubspace("g"), perSubspace("omega"),
		},
		Metadata: tables.Metadata("OfferNetwork", req, "subspaces", strconv.Itoa(s.j), "estimator", string(s.mode)),
	}
	return &api.Exchange{
		Out: out, Window: 1, BatchBytes: questionBytes, Begin: s.begin, Do: s.take, End: s.end, Close: func() { s.stop() },
	}, nil
}

// termsOf are the names of the terms of an answer.
var termsOf = map[kernels.Mode][]string{
	kernels.LossOnly: {"residual"},
	kernels.Explicit: {"residual", "explicit"},
	kernels.Backprop: {"residual", "backprop"},
	kernels.Full:     {"residual", "explicit", "implicit1", "implicit2", "implicit3"},
}

// put asks a question and returns its answer. The work calls it.
func (s *session) put(q question) ([]float64, error) {
	s.answer, q.meta["wants"] = make([]float64, 0, q.wants), q.wants
	if !s.ask(q) {
		return nil, sampler.ErrLeft
	}
	return s.answer, nil
}

// Ask implements passes.Asker.
func (s *session) Ask(_ context.Context, q passes.Question) (*kernels.Terms, error) {
	names := termsOf[q.Mode]
	values, err := s.put(question{
		batch: batchOf(q), meta: s.status("terms", "terms", names), wants: len(names) * len(q.G),
	})
	if err != nil {
		return nil, err
	}
	out := &kernels.Terms{Mode: q.Mode, J: q.J}
	fields := map[string]*[]float64{
		"residual": &out.Residual, "explicit": &out.ExplicitX, "backprop": &out.Backprop,
		"implicit1": &out.Implicit1, "implicit2": &out.Implicit2, "implicit3": &out.Implicit3,
	}
	for i, name := range names {
		*fields[name] = values[i*len(q.G):][:len(q.G)]
	}
	for i, v := range out.Residual {
		if v < 0 || v > math.MaxFloat32 {
			return nil, api.Errorf(api.BadTensor, "A residual must lie in 0 … 3e38, got %g in row %d", v, i/q.J).
				WithHint("It is |P_j(flow + ε)|², summed over the values of an image.")
		}
	}
	return out, nil
}

// AskImages implements passes.ImageAsker.
func (s *session) AskImages(_ context.Context, q passes.Question) ([]float64, error) {
	return s.put(question{batch: batchOf(q), meta: s.status("residuals"), wants: len(q.Images) * s.size()})
}

// batchOf returns a question of samples as a batch.
func batchOf(q passes.Question) *api.Batch {
	n := len(q.Images)
	filled := func(v []float64, n int) []float64 {
		if v == nil {
			v = make([]float64, n)
		}
		return v
	}
	return &api.Batch{Rows: n, Cols: []any{
		q.Images, q.Labels, q.Noise, filled(q.T, n), filled(q.G, n*q.J), filled(q.Omega, n*q.J),
	}}
}

// begin starts the work and emits the first question.
func (s *session) begin(ctx context.Context, emit func(api.Event) error) error {
	s.next, s.stop = iter.Pull(func(ask func(question) bool) {
		s.ask = ask
		s.err = safely.Do(func() error { return s.work(ctx) })
	})
	return s.goOn(emit)
}

// goOn emits the next question, or the result if there is none.
func (s *session) goOn(emit func(api.Event) error) error {
	if q, asked := s.next(); asked {
		s.question = &q
		return emit(api.Event{Batch: q.batch, Meta: q.meta})
	}
	if s.err != nil {
		return s.err
	}
	meta := api.Meta(s.result())
	meta["event"] = "stored"
	if s.row != nil {
		meta["row"] = s.row
	}
	return emit(api.Event{Meta: meta})
}

// take adds values to the answer to the open question, and emits the next question when the answer is complete.
func (s *session) take(_ context.Context, in api.Batch, emit func(api.Event) error) error {
	q := s.question
	if q == nil {
		return api.Errorf(api.BadRequest, "All is done, and nothing is asked").
			WithHint("End the stream when a reply says stored.")
	}
	values := api.ColumnOf[float64](s.answers, in, "values")
	if len(s.answer)+len(values) > q.wants {
		return api.Errorf(api.BadTensor, "The answer has more than the %d values that are asked for", q.wants).
			WithHint("Batches hold the values of one answer, in the order in which they are asked for.")
	}
	if !q.anyNumber {
		if err := tables.Finite("values", values, 1); err != nil {
			return err
		}
	}
	if s.answer = append(s.answer, values...); len(s.answer) < q.wants {
		return nil
	}
	s.question = nil
	return s.goOn(emit)
}

// end ends the session of a client that sends no more. Complete answers are used and stored.
func (s *session) end(context.Context) (map[string]any, error) {
	s.stop()
	if s.err != nil {
		return nil, s.err
	}
	return s.result(), nil
}
