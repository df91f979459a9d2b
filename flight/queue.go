package flight

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/anisoflight/anisoflight/flight/api"
)

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
