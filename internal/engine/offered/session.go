// Package offered searches samplers for networks that stay with a client.
//
// A session is one exchange. The server asks the client to sample along a plan from given latents, or to evaluate its
// network at given noisy images. The client does this, and answers with sums or with numbers for each row. Everything
// else is as for a network on the device.
//
// Invariants: one question at a time is open; an impossible answer is refused before anything changes; whatever ends
// the exchange, it ends with the best so far.
//
// Begin reading with Open.
package offered

import (
	"context"
	"iter"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// session is one search. It is a coroutine: it runs from one question to the next, while the exchange waits for it. It
// is also the ensemble that the search samples with.
type session struct {
	req    api.OfferNetwork
	known  schedule.Range // noise levels of the network
	images *data.Dataset  // of the client; nil: samples are compared with converged samples

	lawSent     bool // the client has the law
	evaluations int
	states      map[*sampler.States]int // numbers of the states that the client keeps

	done, total int    // thousandths of the search
	part        string // of the search, in work
	found       *search.FewResult
	plan        *api.Plan
	law         string // of the images, base64 of its file
	start       *api.StartInfo
	seconds     map[string]float64

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

// Open checks a request and the columns of the answers, and opens a session.
func Open(_ context.Context, req api.OfferNetwork, in api.Schema) (*api.Exchange, error) {
	s := &session{
		req: req, known: schedule.Range{Min: req.SigmaMin, Max: req.SigmaMax}, answers: in, stop: func() {},
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := tables.CheckColumns(in, []api.Column{{Name: "values", Type: api.Float64}}, nil); err != nil {
		return nil, err
	}
	out := api.Schema{
		Columns: []api.Column{
			{Name: "image", Type: api.Int64},
			{Name: "label", Type: api.Int32},
			{Name: "noise", Type: api.Uint64},
			{Name: "g", Type: api.Float64},
		},
		Metadata: tables.Metadata("OfferNetwork", req),
	}
	return &api.Exchange{
		Out: out, Window: 1, BatchBytes: questionBytes, Begin: s.begin, Do: s.take, End: s.end, Close: func() { s.stop() },
	}, nil
}

// put asks a question and returns its answer. The work calls it.
func (s *session) put(q question) ([]float64, error) {
	s.answer, q.meta["wants"] = make([]float64, 0, q.wants), q.wants
	if !s.ask(q) {
		return nil, sampler.ErrLeft
	}
	return s.answer, nil
}

// status returns the metadata of the next question: what it asks for, progress, and more pairs of key and value.
func (s *session) status(ask string, more ...any) api.Meta {
	meta := api.Done(int64(s.done), int64(s.total))
	meta["ask"] = ask
	if s.part != "" {
		meta["part"] = s.part
	}
	for i := 0; i+1 < len(more); i += 2 {
		meta[more[i].(string)] = more[i+1]
	}
	return meta
}

// AskResiduals implements [passes.Asker].
func (s *session) AskResiduals(_ context.Context, q passes.Question) ([]float64, error) {
	return s.put(question{batch: batchOf(q), meta: s.status("residuals"), wants: len(q.Images) * s.size()})
}

// batchOf returns a question as a batch.
func batchOf(q passes.Question) *api.Batch {
	n := len(q.Images)
	if q.G == nil {
		q.G = make([]float64, n)
	}
	return &api.Batch{Rows: n, Cols: []any{q.Images, q.Labels, q.Noise, q.G}}
}

// begin starts the work and emits the first question.
func (s *session) begin(ctx context.Context, emit func(api.Event) error) error {
	s.next, s.stop = iter.Pull(func(ask func(question) bool) {
		s.ask = ask
		s.err = safely.Do(func() error { return s.work(ctx) })
	})
	return s.resume(emit)
}

// resume emits the next question, or the result if there is none.
func (s *session) resume(emit func(api.Event) error) error {
	if q, asked := s.next(); asked {
		s.question = &q
		return emit(api.Event{Batch: q.batch, Meta: q.meta})
	}
	if s.err != nil {
		return s.err
	}
	meta := api.Meta(s.result())
	meta["event"] = "found"
	return emit(api.Event{Meta: meta})
}

// take adds values to the answer to the open question, and emits the next question when the answer is complete.
func (s *session) take(_ context.Context, in api.Batch, emit func(api.Event) error) error {
	q := s.question
	if q == nil {
		return api.Errorf(api.BadRequest, "All is done, and nothing is asked").
			WithHint("End the stream when a reply says found.")
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
	return s.resume(emit)
}

// end ends the session of a client that sends no more.
func (s *session) end(context.Context) (map[string]any, error) {
	s.stop()
	if s.err != nil {
		return nil, s.err
	}
	return s.result(), nil
}
