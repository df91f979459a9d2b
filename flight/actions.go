package flight

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/anisoflight/anisoflight/flight/api"
)

// DoAction does an operation. What moves tables answers with Arrow IPC streams, each complete in itself; everything else
// with JSON objects.
func (s *service) DoAction(action *flight.Action, to flight.FlightService_DoActionServer) error {
	send := func(body []byte) error { return transportErrorOrNil(to.Send(&flight.Result{Body: body})) }
	for _, op := range api.Operations() {
		switch {
		case op.Name != action.GetType() || !op.Action:
		case op.Rows:
			return s.rowsAction(to.Context(), op.Name, action.GetBody(), send)
		default:
			return s.jsonAction(to.Context(), op.Name, action.GetBody(), send)
		}
	}
	return opNotFound("action", action.GetType())
}

// ListActions describes every action in a sentence.
func (s *service) ListActions(_ *flight.Empty, to flight.FlightService_ListActionsServer) error {
	for _, op := range api.Operations() {
		if !op.Action {
			continue
		}
		if err := to.Send(&flight.ActionType{Type: op.Name, Description: op.Sentence}); err != nil {
			return transportError(err)
		}
	}
	return nil
}

// Long JSON actions tell of their progress, in results before the last. Short ones do not, so that their one result is the
// answer.
const (
	quiet         = time.Second            // before the first news
	betweenResult = 500 * time.Millisecond // between two
)

// jsonAction answers with the reply, after news of the progress if it takes long: {"event":"progress",...}.
func (s *service) jsonAction(ctx context.Context, name string, body []byte, send func([]byte) error) error {
	next := time.Now().Add(quiet)
	reply, err := s.server.engine.Action(ctx, name, body, func(meta api.Meta) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next = now.Add(betweenResult)
		if text, err := json.Marshal(meta); err == nil {
			_ = send(text) // a client that has gone cancels ctx, which ends the action
		}
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	return send(text)
}

// rowsAction answers with the operation's rows: at least one body, all of one schema. Progress has no place there.
func (s *service) rowsAction(ctx context.Context, op string, body []byte, send func([]byte) error) error {
	job, err := s.server.engine.Prepare(ctx, op, body)
	if err != nil {
		return err
	}
	as, err := arrowSchema(job.Schema)
	if err != nil {
		return err
	}
	empty, err := streamBody(as, job.Schema, emptyBatch(job.Schema))
	if err != nil {
		return err
	}
	room := maxResultBytes - int64(len(empty)) - framingBytes
	if job.Schema.RowBytes() > room {
		return api.Errorf(api.TooLarge, "One row has %d bytes and a result at most %d", job.Schema.RowBytes(), room).WithHint("Use DoGet.")
	}
	most, sent := rowsWithin(job.Schema, room), false
	err = job.Run(ctx, func(e api.Event) error {
		if e.Batch == nil {
			return ctx.Err()
		}
		for from := 0; from < e.Batch.Rows; from += most {
			rows := rowsOf(job.Schema, *e.Batch, from, min(from+most, e.Batch.Rows))
			text, err := streamBody(as, job.Schema, rows)
			if err == nil {
				err = send(text)
			}
			if err != nil {
				return err
			}
			sent = true
		}
		return nil
	})
	if err != nil || sent {
		return err
	}
	return send(empty)
}

// streamBody writes a batch as an Arrow IPC stream: schema, batch, end.
func streamBody(as *arrow.Schema, s api.Schema, b api.Batch) ([]byte, error) {
	r, err := record(as, s, b)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var body bytes.Buffer
	w := ipc.NewWriter(&body, ipc.WithSchema(as))
	if err := w.Write(r); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}
