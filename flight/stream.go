package flight

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/semaphore"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// sink sends the events of the work. It belongs to one goroutine.
type sink interface {
	event(api.Event) error
	heartbeat() error // called if nothing was sent for some time
	lastSent() time.Time
}

// run calls work in a new goroutine, whose emit fills the queue, and sends the queue's events from this goroutine. It
// returns when the work has ended and all events are sent. If release is not nil, it is called when the work has ended.
//
// If ctx ends first, run returns at once, so that the client gets the error. The work then ends within one evaluation
// of the network; Shutdown and Stop wait for it.
func (s *Server) run(ctx context.Context, to sink, q *queue, release func(),
	work func(ctx context.Context, emit func(api.Event) error) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workErr error
	s.works.Go(func() {
		defer close(q.events)
		if release != nil {
			defer release()
		}
		workErr = recovered(s.log, func() error {
			return work(ctx, func(e api.Event) error { return q.push(ctx, e) })
		})
	})
	if err := s.forward(ctx, to, q); err != nil {
		if !errors.Is(err, context.Canceled) {
			return err
		}
		select { // prefer the work's own error, if it has failed already
		case _, open := <-q.events:
			if !open && workErr != nil {
				return workErr
			}
		default:
		}
		return err
	}
	return workErr // the queue is closed: the work has ended
}

// forward sends the events of the queue until it is closed.
func (s *Server) forward(ctx context.Context, to sink, q *queue) error {
	ticker := time.NewTicker(s.cfg.Heartbeat / 4)
	defer ticker.Stop()
	for {
		select {
		case e, ok := <-q.events:
			if !ok {
				return nil
			}
			if e.Batch != nil {
				callOf(ctx).rows.Add(int64(e.Batch.Rows))
			}
			err := to.event(e)
			q.sent(e)
			if err != nil {
				return err
			}
		case <-ticker.C:
			if time.Since(to.lastSent()) < s.cfg.Heartbeat*3/4 {
				continue
			}
			if err := to.heartbeat(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// queue carries events from the goroutine that works to the one that sends. When its bytes are used up, the work waits
// for the client.
type queue struct {
	events   chan api.Event
	room     *semaphore.Weighted // free bytes
	capacity int64               // bytes
	patience time.Duration       // 0: no limit
	schema   api.Schema
}

// maxEvents bounds the number of events in a queue.
const maxEvents = 1024

// newQueue returns a queue of capacity bytes of rows. If there is no room within patience, push fails.
func newQueue(s api.Schema, capacity int64, patience time.Duration) *queue {
	return &queue{
		events: make(chan api.Event, maxEvents), room: semaphore.NewWeighted(capacity), capacity: capacity,
		patience: patience, schema: s,
	}
}

// weight returns the bytes that an event counts for: enough that the channel never has more than maxEvents.
func (q *queue) weight(e api.Event) int64 {
	w := q.capacity/maxEvents + 1
	if e.Batch != nil {
		w = max(w, int64(e.Batch.Rows)*q.schema.RowBytes())
	}
	return min(w, q.capacity)
}

// push adds an event, whose memory then belongs to the queue.
func (q *queue) push(ctx context.Context, e api.Event) error {
	wait := ctx
	if q.patience > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, q.patience)
		defer cancel()
	}
	if err := q.room.Acquire(wait, q.weight(e)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return api.Errorf(api.TooLarge, "The client has not read %d bytes of replies", q.capacity).
			WithHint("Read replies while you write, and have at most \"window\" batches without a reply.")
	}
	q.events <- e // never blocks, see weight
	return nil
}

// sent frees the bytes of an event that was sent.
func (q *queue) sent(e api.Event) { q.room.Release(q.weight(e)) }

// outStream is the sink of a DoGet or DoExchange.
type outStream struct {
	to      *wire.Writer
	api     api.Schema
	arrow   *arrow.Schema
	maxRows int // rows of a message
	started time.Time
	last    time.Time       // time of the last message
	rows    int64           // number of rows sent
	waits   func() api.Meta // what the work waits for; may be nil or return nil
}

// openStream sends the schema and an empty batch with meta.
func openStream(to wire.Sender, s api.Schema, maxRows int, meta api.Meta) (*outStream, error) {
	as, err := columns.ToArrow(s)
	if err != nil {
		return nil, err
	}
	o := &outStream{to: wire.NewWriter(to, as, nil), api: s, arrow: as, maxRows: maxRows, started: time.Now()}
	return o, o.empty(meta)
}

// event sends an event: its rows in messages of at most maxRows rows, the last with the event's metadata, or an empty
// batch with the metadata. Other messages have the number of rows sent as metadata.
func (o *outStream) event(e api.Event) error {
	if e.Batch == nil {
		return o.empty(e.Meta)
	}
	b := *e.Batch
	for from := 0; ; {
		to := min(from+o.maxRows, b.Rows)
		meta := api.Done(o.rows+int64(to-from), -1)
		if to == b.Rows && e.Meta != nil {
			meta = e.Meta
		}
		if err := o.send(columns.Rows(o.api, b, from, to), meta); err != nil || to == b.Rows {
			return err
		}
		from = to
	}
}

// empty sends an empty batch with metadata.
func (o *outStream) empty(meta api.Meta) error { return o.send(columns.Empty(o.api), meta) }

// heartbeat sends an empty batch with the time, and with what the work waits for.
func (o *outStream) heartbeat() error {
	meta := api.Meta{"event": "progress"}
	if o.waits != nil {
		if status := o.waits(); status != nil {
			meta = status
		}
	}
	meta["rows"], meta["elapsed_s"] = o.rows, o.elapsed()
	return o.empty(meta)
}

// end sends the last message of a successful stream, whose metadata includes more.
func (o *outStream) end(more map[string]any) error {
	meta := api.Meta{}
	maps.Copy(meta, more)
	meta["event"], meta["rows"], meta["elapsed_s"] = "end", o.rows, o.elapsed()
	return o.empty(meta)
}

func (o *outStream) lastSent() time.Time { return o.last }

func (o *outStream) elapsed() float64 { return time.Since(o.started).Seconds() }

func (o *outStream) send(b api.Batch, meta api.Meta) error {
	text, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	r, err := columns.Record(o.arrow, o.api, b)
	if err != nil {
		return err
	}
	defer r.Release()
	if err := o.to.Write(r, text); err != nil {
		return transportError(err)
	}
	o.rows += int64(b.Rows)
	o.last = time.Now()
	return nil
}
