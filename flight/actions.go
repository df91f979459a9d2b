package flight

import (
	"context"
	"encoding/json"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// DoAction calls an operation. If it returns rows, every result is a complete Arrow IPC stream, else a JSON object.
func (s *service) DoAction(_ *flight.Action, to flight.FlightService_DoActionServer) error {
	send := func(body [][]byte) error { return transportError(to.SendMsg(&wire.Result{Body: body})) }
	request := callOf(to.Context()).request
	if request.Op.Rows {
		return s.rowsAction(to.Context(), request, send)
	}
	return s.jsonAction(to.Context(), request, send)
}

// ListActions lists every action with its description.
func (s *service) ListActions(_ *flight.Empty, to flight.FlightService_ListActionsServer) error {
	for _, op := range s.server.table {
		if !op.By(api.ByAction) {
			continue
		}
		if err := to.Send(&flight.ActionType{Type: op.Name, Description: op.Sentence}); err != nil {
			return transportError(err)
		}
	}
	return nil
}

// results is the sink of a DoAction. It sends the results of an event.
type results func(api.Event) error

func (r results) event(e api.Event) error { return r(e) }

// heartbeat does nothing: every result is part of the reply.
func (r results) heartbeat() error    { return nil }
func (r results) lastSent() time.Time { return time.Now() }

// queueBytes bounds the unread results of an action and the unread rows of a DoGet.
const queueBytes = 8 << 20

// A JSON action that takes longer than firstProgress reports its progress, in results before the last one. A shorter
// action has one result, the reply.
const (
	firstProgress   = time.Second
	betweenProgress = 500 * time.Millisecond
)

// jsonAction sends the reply, after progress {"event":"progress",...} if the action takes long.
func (s *service) jsonAction(ctx context.Context, request api.Call, send func([][]byte) error) error {
	sendJSON := func(value any) error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		return send([][]byte{text})
	}
	to := results(func(e api.Event) error { return sendJSON(e.Meta) })
	var reply any
	next := time.Now().Add(firstProgress)
	err := s.server.run(ctx, to, newQueue(api.Schema{}, queueBytes, 0), nil,
		func(ctx context.Context, emit func(api.Event) error) (err error) {
			reply, err = s.server.engine.Action(ctx, request, func(meta api.Meta) {
				if now := time.Now(); now.After(next) {
					next = now.Add(betweenProgress)
					_ = emit(api.Event{Meta: meta}) // fails only if ctx has ended, which ends the action
				}
			})
			return err
		})
	if err != nil {
		return err
	}
	return sendJSON(reply)
}

// rowsAction sends the operation's rows in at least one result, all of one schema, without progress.
func (s *service) rowsAction(ctx context.Context, request api.Call, send func([][]byte) error) error {
	job, err := s.server.engine.Prepare(ctx, request)
	if err != nil {
		return err
	}
	as, err := columns.ToArrow(job.Schema)
	if err != nil {
		return err
	}
	empty, err := streamBody(as, job.Schema, columns.Empty(job.Schema))
	if err != nil {
		return err
	}
	room := int64(maxResultBytes - framingBytes)
	for _, piece := range empty {
		room -= int64(len(piece))
	}
	if job.Schema.RowBytes() > room {
		return api.Errorf(api.TooLarge, "One row has %d bytes and a result at most %d", job.Schema.RowBytes(), room).
			WithHint("Use DoGet.")
	}
	maxRows, sent := rowsWithin(job.Schema, room), false
	to := results(func(e api.Event) error {
		for from := 0; e.Batch != nil && from < e.Batch.Rows; from += maxRows {
			rows := columns.Rows(job.Schema, *e.Batch, from, min(from+maxRows, e.Batch.Rows))
			body, err := streamBody(as, job.Schema, rows)
			if err != nil {
				return err
			}
			if err := send(body); err != nil {
				return err
			}
			sent = true
		}
		return nil
	})
	err = s.server.run(ctx, to, newQueue(job.Schema, queueBytes, 0), nil, job.Run)
	if err != nil || sent {
		return err
	}
	return send(empty)
}

// streamBody returns a batch as an Arrow IPC stream, in pieces that share its memory.
func streamBody(as *arrow.Schema, s api.Schema, b api.Batch) ([][]byte, error) {
	r, err := columns.Record(as, s, b)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return wire.Stream(as, r)
}

// DoGet runs the operation of the ticket and streams its rows.
func (s *service) DoGet(_ *flight.Ticket, to flight.FlightService_DoGetServer) error {
	job, err := s.server.engine.Prepare(to.Context(), callOf(to.Context()).request)
	if err != nil {
		return err
	}
	start := api.Meta{"event": "start"}
	if job.Rows >= 0 {
		start["total"] = job.Rows
	}
	out, err := openStream(to, job.Schema, rowsPerMessage(job.Schema, job.BatchBytes), start)
	if err != nil {
		return err
	}
	out.waits = job.Waits
	if err := s.server.run(to.Context(), out, newQueue(job.Schema, queueBytes, 0), nil, job.Run); err != nil {
		return err
	}
	return out.end(nil)
}
