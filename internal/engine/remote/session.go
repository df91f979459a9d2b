// Package remote makes schedules for networks that stay with a client.
//
// A session is one exchange. The server asks: which samples, at which noise levels and weights. The client evaluates
// its network there and answers with the per-sample terms of package kernels, 2J numbers in and a few per subspace out,
// as a device would. All else is train's: a Remote learns by the terms, passes.AskGeodesic measures by them. So there
// is one trainer, and a second source of what it consumes.
//
// Invariants: one question is unanswered at a time; an answer that cannot be is refused before anything moves; whatever
// ends the exchange, the steps taken are stored.
//
// Begin reading with Maker.
package remote

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/passes"
)

// session asks a client for the terms of its network, and works with the answers. The work is a coroutine: it runs from
// one question to the next while the exchange waits for it.
type session struct {
	maker
	in       api.Schema
	next     func() (question, bool) // false when the work has ended; err is then set
	stop     func()                  // ends the work: its question has no answer
	question *question               // not yet answered
	ask      func(question) bool
	answer   *kernels.Terms
	err      error
}

// question is what is asked, with what a reply says about it.
type question struct {
	passes.Question
	meta api.Meta
}

// errLeft ends the work if the client has no more answers.
var errLeft = errors.New("remote: the client has left")

// questionBytes is more than a question has: it travels as one message.
const questionBytes = 32 << 20

// Maker makes schedules for networks that clients evaluate.
type Maker struct{ Catalog *catalog.Catalog }

// Open checks a request and the columns of the answers, and opens a session.
func (k Maker) Open(_ context.Context, req api.RemoteSchedule, in api.Schema) (*api.Exchange, error) {
	// Before the work; storing checks it again.
	if err := k.Catalog.FreeSchedule(req.Name, req.Replace); err != nil {
		return nil, err
	}
	s := &session{in: in, stop: func() {}}
	if err := s.prepare(k.Catalog, req, s); err != nil {
		return nil, err
	}
	perSubspace := func(name string) api.Column {
		return api.Column{Name: name, Type: api.Float64, Kind: api.List, Shape: []int{s.j}}
	}
	var columns []api.Column
	for _, name := range columnsOf[s.mode] {
		columns = append(columns, perSubspace(name))
	}
	if err := tables.Want(in, columns, nil); err != nil {
		return nil, err
	}
	out := api.Schema{
		Columns: []api.Column{
			{Name: "image", Type: api.Int64},
			{Name: "label", Type: api.Int32},
			{Name: "noise", Type: api.Uint64},
			{Name: "t", Type: api.Float64},
			perSubspace("g"), perSubspace("omega"),
		},
		Metadata: tables.Metadata("RemoteSchedule", req, "subspaces", strconv.Itoa(s.j), "estimator", string(s.mode)),
	}
	return &api.Exchange{
		Out: out, Window: 1, BatchBytes: questionBytes, Begin: s.begin, Do: s.take, End: s.end, Close: func() { s.stop() },
	}, nil
}

// columnsOf are the columns of an answer, by what is asked for.
var columnsOf = map[kernels.Mode][]string{
	kernels.LossOnly: {"residual"},
	kernels.Explicit: {"residual", "explicit"},
	kernels.Backprop: {"residual", "backprop"},
	kernels.Full:     {"residual", "explicit", "implicit1", "implicit2", "implicit3"},
}

// Ask implements passes.Asker. It is called by the work.
func (s *session) Ask(_ context.Context, q passes.Question) (*kernels.Terms, error) {
	if !s.ask(question{q, s.status()}) {
		return nil, errLeft
	}
	return s.answer, nil
}

// begin starts the work and emits the first question.
func (s *session) begin(ctx context.Context, emit func(api.Event) error) error {
	s.next, s.stop = iter.Pull(func(ask func(question) bool) {
		s.ask = ask
		s.err = safely.Do(func() error { return s.work(ctx) })
	})
	return s.goOn(emit)
}

// goOn emits the next question, or says that all is done.
func (s *session) goOn(emit func(api.Event) error) error {
	if q, asked := s.next(); asked {
		s.question = &q
		batch := &api.Batch{Rows: len(q.Images), Cols: []any{q.Images, q.Labels, q.Noise, q.T, q.G, q.Omega}}
		q.meta["terms"] = columnsOf[q.Mode]
		return emit(api.Event{Batch: batch, Meta: q.meta})
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

// take takes the client's answer to the question that is open, and emits the next.
func (s *session) take(_ context.Context, in api.Batch, emit func(api.Event) error) (err error) {
	if s.question == nil {
		return api.Errorf(api.BadRequest, "The schedule %q is stored, and nothing is asked", s.req.Name).
			WithHint("End the stream when a reply says stored.")
	}
	if s.answer, err = s.read(in); err != nil {
		return err
	}
	s.question = nil
	return s.goOn(emit)
}

// read checks an answer.
func (s *session) read(in api.Batch) (*kernels.Terms, error) {
	q := s.question
	if in.Rows != len(q.Images) {
		return nil, api.Errorf(api.BadTensor, "The answer has %d rows, the question %d", in.Rows, len(q.Images)).
			WithHint("One batch answers one question, row by row.")
	}
	out := &kernels.Terms{Mode: q.Mode, J: q.J}
	fields := map[string]*[]float64{
		"residual": &out.Residual, "explicit": &out.ExplicitX, "backprop": &out.Backprop,
		"implicit1": &out.Implicit1, "implicit2": &out.Implicit2, "implicit3": &out.Implicit3,
	}
	for _, name := range columnsOf[q.Mode] { // of a measurement the residual alone
		values := slices.Clone(api.ColumnOf[float64](s.in, in, name)) // the batch's memory is lent
		if err := tables.Finite(name, values, q.J); err != nil {
			return nil, err
		}
		*fields[name] = values
	}
	for i, v := range out.Residual {
		if v < 0 || v > math.MaxFloat32 {
			return nil, api.Errorf(api.BadTensor, "Column \"residual\" holds %g in row %d, outside 0 … 3e38", v, i/q.J).
				WithHint("It is |P_j(flow + ε)|², summed over the values of an image.")
		}
	}
	return out, nil
}

// end is the end of a client that sends no more: what it has answered is worked in, and stored.
func (s *session) end(context.Context) (map[string]any, error) {
	s.stop()
	if s.err != nil {
		return nil, s.err
	}
	return s.result(), nil
}
