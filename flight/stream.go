package flight

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/anisoflight/anisoflight/flight/api"
)

// outStream writes the messages of one DoGet or DoExchange. It belongs to one goroutine.
type outStream struct {
	to      *flight.Writer
	api     api.Schema
	arrow   *arrow.Schema
	most    int // rows a message
	started time.Time
	last    time.Time // when something was sent
	rows    int64     // sent so far
}

// openStream sends the schema and a batch of no rows that carries meta.
func openStream(to flight.DataStreamWriter, s api.Schema, most int, meta api.Meta) (*outStream, error) {
	as, err := arrowSchema(s)
	if err != nil {
		return nil, err
	}
	o := &outStream{to: flight.NewRecordWriter(to, ipc.WithSchema(as)), api: s, arrow: as, most: most, started: time.Now()}
	return o, o.news(meta)
}

// event sends an event: its rows, cut to size, with the metadata on the last of them, or its metadata alone.
func (o *outStream) event(e api.Event) error {
	if e.Batch == nil {
		return o.news(e.Meta)
	}
	b := *e.Batch
	for from := 0; ; {
		to := min(from+o.most, b.Rows)
		var meta api.Meta
		if to == b.Rows {
			meta = e.Meta
		}
		if err := o.send(rowsOf(o.api, b, from, to), meta); err != nil || to == b.Rows {
			return err
		}
		from = to
	}
}

// news sends a batch of no rows with metadata.
func (o *outStream) news(meta api.Meta) error { return o.send(emptyBatch(o.api), meta) }

// beat breaks the silence.
func (o *outStream) beat() error {
	return o.news(api.Meta{"event": "progress", "rows": o.rows, "elapsed_s": o.elapsed()})
}

// end sends the last message, which says that all went well. more is what the operation adds to it.
func (o *outStream) end(more map[string]any) error {
	meta := api.Meta{}
	maps.Copy(meta, more)
	meta["event"], meta["rows"], meta["elapsed_s"] = "end", o.rows, o.elapsed()
	return o.news(meta)
}

func (o *outStream) elapsed() float64 { return time.Since(o.started).Seconds() }

func (o *outStream) send(b api.Batch, meta api.Meta) error {
	var text []byte
	if meta != nil {
		var err error
		if text, err = json.Marshal(meta); err != nil {
			return err
		}
	}
	r, err := record(o.arrow, o.api, b)
	if err != nil {
		return err
	}
	defer r.Release()
	if err := o.to.WriteWithAppMetadata(r, text); err != nil {
		return transportError(err)
	}
	o.rows += int64(b.Rows)
	o.last = time.Now()
	return nil
}

// work is what runs beside a stream and fills it through emit. What it returns travels in the last message.
type work func(ctx context.Context, emit func(api.Event) error) (end map[string]any, err error)

// run does the work in a goroutine of its own and sends its events from this one, with a heartbeat whenever nothing else
// was sent for a while, and the end. It returns after the work has: a stream that fails, or whose context ends, cancels it.
func (s *Server) run(ctx context.Context, out *outStream, q *queue, do work) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		more    map[string]any
		workErr error
	)
	go func() {
		defer q.close()
		workErr = safely(s.log, func() (err error) {
			more, err = do(ctx, func(e api.Event) error { return q.push(ctx, e) })
			return err
		})
	}()
	err := s.forward(ctx, out, q)
	if err != nil {
		cancel()
	}
	for range q.events { // until the work has ended; what it wrote before is visible then
	}
	// A cancellation is what follows from the other's error, if there is one.
	switch cancelled := errors.Is(err, context.Canceled); {
	case err != nil && !cancelled, cancelled && workErr == nil, cancelled && errors.Is(workErr, context.Canceled):
		return err
	case workErr != nil:
		return workErr
	}
	return out.end(more)
}

// forward sends what the queue holds until it is closed.
func (s *Server) forward(ctx context.Context, out *outStream, q *queue) error {
	ticker := time.NewTicker(s.cfg.Heartbeat / 4)
	defer ticker.Stop()
	for {
		select {
		case e, ok := <-q.events:
			if !ok {
				return nil
			}
			err := out.event(e)
			q.sent(e)
			if err != nil {
				return err
			}
		case <-ticker.C:
			if time.Since(out.last) < s.cfg.Heartbeat*3/4 {
				continue
			}
			if err := out.beat(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
