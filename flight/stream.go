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

// sink sends what comes out of the work. It belongs to one goroutine.
type sink interface {
	event(api.Event) error
	heartbeat() error // called when nothing else was sent for a while
	lastSent() time.Time
}

// run does work in a goroutine of its own, which fills the queue through emit, and sends what the queue holds from this
// one. It returns once all is sent and the work has ended.
//
// When ctx ends first it returns at once, so that the client hears why, and the work ends by itself within one network
// evaluation; until then it keeps Shutdown and Stop waiting. release, which may be nil, is called when the work has
// ended.
func (s *Server) run(ctx context.Context, to sink, q *queue, release func(),
	work func(ctx context.Context, emit func(api.Event) error) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workErr error
	s.works.Go(func() {
		defer q.close()
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
		select { // a reason better than that the stream is gone, if there is one already
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

// forward sends what the queue holds until it is closed.
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

// queue carries events from the goroutine that works to the one that sends. Its bytes are bounded; a full one makes the
// work wait for the client.
type queue struct {
	events   chan api.Event
	room     *semaphore.Weighted // in bytes
	most     int64
	patience time.Duration // 0 without end
	schema   api.Schema
}

// maxWaiting is how many events may wait, whatever their size.
const maxWaiting = 1024

// newQueue returns a queue of at most so many bytes of rows. If no room comes up within patience, push fails.
func newQueue(s api.Schema, most int64, patience time.Duration) *queue {
	return &queue{
		events: make(chan api.Event, maxWaiting), room: semaphore.NewWeighted(most), most: most,
		patience: patience, schema: s,
	}
}

// weight counts an event's bytes, so that not more of them wait than the channel holds.
func (q *queue) weight(e api.Event) int64 {
	w := q.most/maxWaiting + 1
	if e.Batch != nil {
		w = max(w, int64(e.Batch.Rows)*q.schema.RowBytes())
	}
	return min(w, q.most)
}

// push hands an event over. Its memory belongs to the queue from then on.
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
		return api.Errorf(api.TooLarge, "%d bytes of replies wait and nobody reads them", q.most).
			WithHint("Read the replies while you write, with at most as many batches unanswered as \"window\" says.")
	}
	q.events <- e // has room: every event weighs enough
	return nil
}

// sent makes room after an event was sent.
func (q *queue) sent(e api.Event) { q.room.Release(q.weight(e)) }

// close says that nothing follows.
func (q *queue) close() { close(q.events) }

// outStream is the sink of a DoGet or DoExchange.
type outStream struct {
	to      *wire.Writer
	api     api.Schema
	arrow   *arrow.Schema
	most    int // rows a message
	started time.Time
	last    time.Time       // when something was sent
	rows    int64           // sent so far
	waits   func() api.Meta // what the work waits for; nil, or a nil result: nothing to tell of
}

// openStream sends the schema and a batch of no rows that carries meta.
func openStream(to wire.Sender, s api.Schema, most int, meta api.Meta) (*outStream, error) {
	as, err := columns.ToArrow(s)
	if err != nil {
		return nil, err
	}
	o := &outStream{to: wire.NewWriter(to, as, nil), api: s, arrow: as, most: most, started: time.Now()}
	return o, o.empty(meta)
}

// event sends an event: its rows, cut to size, with the metadata on the last of them, or its metadata alone. Every
// message carries metadata; rows that came without say how many there have been.
func (o *outStream) event(e api.Event) error {
	if e.Batch == nil {
		return o.empty(e.Meta)
	}
	b := *e.Batch
	for from := 0; ; {
		to := min(from+o.most, b.Rows)
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

// empty sends a batch of no rows with metadata.
func (o *outStream) empty(meta api.Meta) error { return o.send(columns.Empty(o.api), meta) }

// heartbeat says that the stream is alive, and what the work waits for.
func (o *outStream) heartbeat() error {
	meta := api.Meta{"event": "progress"}
	if o.waits != nil {
		if what := o.waits(); what != nil {
			meta = what
		}
	}
	meta["rows"], meta["elapsed_s"] = o.rows, o.elapsed()
	return o.empty(meta)
}

// end sends the last message, which says that all went well. more is what the operation adds to it.
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
