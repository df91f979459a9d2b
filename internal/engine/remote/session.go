package remote

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/passes"
)

// Session asks a client for the terms of its network, and works with the answers in a goroutine of its own, from Begin
// to Close.
type Session struct {
	req  api.RemoteSchedule
	work *work
	in   api.Schema

	questions chan question
	answers   chan *kernels.Terms
	pending   *question     // not yet answered
	done      chan struct{} // closed when the work has ended; result and err are then set
	stop      context.CancelFunc
	result    *result
	err       error
}

// question is what is asked, with what a reply says about it.
type question struct {
	passes.Question
	meta api.Meta
}

// errLeft ends the work where the client has no more answers.
var errLeft = errors.New("remote: the client has left")

// Open checks a request, and the columns of the answers.
func Open(c *catalog.Catalog, req api.RemoteSchedule, in api.Schema) (*Session, error) {
	if err := c.FreeSchedule(req.Name, req.Replace); err != nil { // before the work; asked again when it is stored
		return nil, err
	}
	s := &Session{
		req: req, in: in, questions: make(chan question), answers: make(chan *kernels.Terms),
		done: make(chan struct{}),
	}
	var err error
	if s.work, err = newWork(c, req, s); err != nil {
		return nil, err
	}
	return s, input.Want(in, s.columns(), nil)
}

// J returns the number of subspaces.
func (s *Session) J() int { return s.work.j }

// Mode returns the estimator's mode; LossOnly where residuals alone are asked for.
func (s *Session) Mode() kernels.Mode { return s.work.mode }

// Questions describes the columns of a question.
func (s *Session) Questions() []api.Column {
	perSubspace := func(name string) api.Column {
		return api.Column{Name: name, Type: api.Float64, Kind: api.List, Shape: []int{s.work.j}}
	}
	return []api.Column{
		{Name: "image", Type: api.Int64},
		{Name: "label", Type: api.Int32},
		{Name: "noise", Type: api.Uint64},
		{Name: "t", Type: api.Float64},
		perSubspace("g"), perSubspace("omega"),
	}
}

// term is a column of an answer, and where its values go.
type term struct {
	name string
	of   func(*kernels.Terms) *[]float64
}

// termsOf returns the columns of an answer.
func termsOf(mode kernels.Mode) []term {
	residual := term{"residual", func(t *kernels.Terms) *[]float64 { return &t.Residual }}
	explicit := term{"explicit", func(t *kernels.Terms) *[]float64 { return &t.ExplicitX }}
	switch mode {
	case kernels.Full:
		return []term{
			residual, explicit,
			{"implicit1", func(t *kernels.Terms) *[]float64 { return &t.Implicit1 }},
			{"implicit2", func(t *kernels.Terms) *[]float64 { return &t.Implicit2 }},
			{"implicit3", func(t *kernels.Terms) *[]float64 { return &t.Implicit3 }},
		}
	case kernels.Explicit:
		return []term{residual, explicit}
	case kernels.Backprop:
		return []term{residual, {"backprop", func(t *kernels.Terms) *[]float64 { return &t.Backprop }}}
	}
	return []term{residual}
}

// namesOf returns the names of an answer's columns.
func namesOf(mode kernels.Mode) (names []string) {
	for _, t := range termsOf(mode) {
		names = append(names, t.name)
	}
	return names
}

// columns describes an answer.
func (s *Session) columns() []api.Column {
	var out []api.Column
	for _, name := range namesOf(s.work.mode) {
		out = append(out, api.Column{Name: name, Type: api.Float64, Kind: api.List, Shape: []int{s.work.j}})
	}
	return out
}

// Ask implements passes.Asker. It is called by the work.
func (s *Session) Ask(ctx context.Context, q passes.Question) (*kernels.Terms, error) {
	select {
	case s.questions <- question{q, s.work.says()}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer, ok := <-s.answers:
		if !ok {
			return nil, errLeft
		}
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Begin starts the work and emits the first question.
func (s *Session) Begin(ctx context.Context, emit func(api.Event) error) error {
	var working context.Context
	working, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(s.done)
		s.err = safely.Do(func() (err error) {
			s.result, err = s.work.run(working)
			return err
		})
	}()
	return s.next(ctx, emit)
}

// next emits the next question, or says that all is done.
func (s *Session) next(ctx context.Context, emit func(api.Event) error) error {
	select {
	case q := <-s.questions:
		s.pending = &q
		batch := &api.Batch{Rows: len(q.Images), Cols: []any{q.Images, q.Labels, q.Noise, q.T, q.G, q.Omega}}
		meta := q.meta
		meta["terms"] = namesOf(q.Mode)
		return emit(api.Event{Batch: batch, Meta: meta})
	case <-s.done:
		if s.err != nil {
			return s.err
		}
		return emit(api.Event{Meta: s.result.stored()})
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answer takes the client's answer to the question that is open, and emits the next.
func (s *Session) Answer(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
	if s.pending == nil {
		return api.Errorf(api.BadRequest, "The schedule %q is stored, and nothing is asked", s.req.Name).
			WithHint("End the stream when a reply says stored.")
	}
	answer, err := s.read(in)
	if err != nil {
		return err
	}
	s.pending = nil
	select {
	case s.answers <- answer:
	case <-s.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.next(ctx, emit)
}

// read checks an answer.
func (s *Session) read(in api.Batch) (*kernels.Terms, error) {
	q := s.pending
	if in.Rows != len(q.Images) {
		return nil, api.Errorf(api.BadTensor, "The answer has %d rows, the question %d", in.Rows, len(q.Images)).
			WithHint("One batch answers one question, row by row.")
	}
	out := &kernels.Terms{Mode: q.Mode, J: q.J}
	for _, t := range termsOf(q.Mode) { // of a measurement the residual alone
		values := slices.Clone(api.ColumnOf[float64](s.in, in, t.name)) // the batch's memory is lent
		if err := input.Finite(t.name, values, q.J); err != nil {
			return nil, err
		}
		*t.of(out) = values
	}
	for i, v := range out.Residual {
		if v < 0 || v > math.MaxFloat32 {
			return nil, api.Errorf(api.BadTensor, "Column \"residual\" holds %g in row %d, outside 0 … 3e38", v, i/q.J).
				WithHint("It is |P_j(flow + ε)|², summed over the values of an image.")
		}
	}
	return out, nil
}

// End is the end of a client that sends no more: what it has answered is worked in, and stored.
func (s *Session) End(ctx context.Context) (map[string]any, error) {
	close(s.answers)
	select {
	case <-s.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.result.describe(), nil
}

// Close ends the work, however the exchange ended, once what it has learned is stored.
func (s *Session) Close() {
	if s.stop == nil {
		return
	}
	s.stop()
	<-s.done
}
