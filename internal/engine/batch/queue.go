package batch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Queue shares a number of slots fairly among clients. A client takes a slot for each network evaluation or training
// step and queues again for the next. Clients take turns, however many requests each has, and the requests of one
// client come in the order of asking. So a long request, or a client with many, delays another client by at most one
// evaluation of each other client.
//
// Runs in the background come after all requests: see [Queue.Yield].
type Queue struct {
	mu        sync.Mutex
	free      int64                      // slots
	waiting   map[string][]chan struct{} // by client; a channel is closed when a slot has been given to it
	order     []string                   // clients that wait, the next first
	given     uint64                     // slots given so far
	requests  int                        // that hold a slot or wait for one
	idleSince time.Time                  // when requests became 0
	due       time.Time                  // of the next step in the background, though there are requests
	step      time.Duration              // of the last of them
}

const (
	// lull is the time without requests after which a step in the background does not wait. It is longer than the pause
	// between two evaluations of a request, or between two short requests of a client.
	lull = 100 * time.Millisecond
	// requestShare is the time of requests between two steps in the background over the duration of the last step.
	requestShare = 9
	// firstStep limits the duration that counts for the first step, which compiles.
	firstStep = 50 * time.Millisecond
)

// NewQueue returns a queue of that many slots.
func NewQueue(slots int64) *Queue {
	return &Queue{free: max(0, slots), waiting: map[string][]chan struct{}{}}
}

// Widen adds slots.
func (q *Queue) Widen(slots int) {
	for range slots {
		q.release()
	}
}

// Take runs f in a slot. It gives up when ctx ends, before f or instead of it.
func (q *Queue) Take(ctx context.Context, f func() error) error {
	if err := q.Acquire(ctx); err != nil {
		return err
	}
	defer q.Release()
	return f()
}

// Acquire waits for a slot for the client of ctx; Release gives it back.
func (q *Queue) Acquire(ctx context.Context) error {
	q.count(1)
	err := q.acquire(ctx)
	if err != nil {
		q.count(-1)
	}
	return err
}

// Release hands the slot to the next that waits.
func (q *Queue) Release() {
	q.count(-1)
	q.release()
}

// count adds to the requests that use the device.
func (q *Queue) count(requests int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.requests += requests; q.requests == 0 {
		q.idleSince = time.Now()
	}
}

// Yield waits until a run in the background may take its next step with TakeStep. It may if no request has used the
// device for a moment, or if requests have had nine times the duration of a step: the shorter one of the last two. So
// requests get nine tenths of the time, and the run goes on with any number of them.
func (q *Queue) Yield(ctx context.Context) error {
	for wait := q.early(); wait > 0; wait = q.early() {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// early returns a time, at most the true one, until the next step in the background is due.
func (q *Queue) early() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	idle := lull
	if q.requests == 0 {
		idle -= time.Since(q.idleSince)
	}
	return min(idle, time.Until(q.due))
}

// TakeStep is Take for a step of a run in the background.
func (q *Queue) TakeStep(ctx context.Context, f func() error) error {
	if err := q.acquire(ctx); err != nil {
		return err
	}
	began := time.Now()
	defer func() {
		q.mu.Lock()
		took := time.Since(began)
		q.due = time.Now().Add(requestShare * min(took, cmp.Or(q.step, firstStep)))
		q.step = took
		q.mu.Unlock()
		q.release()
	}()
	return f()
}

// acquire is Acquire for requests and steps in the background alike.
func (q *Queue) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // a free slot is not for those who no longer want it
		return err
	}
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.given++
		q.mu.Unlock()
		return nil
	}
	client, slot := api.ClientOf(ctx), make(chan struct{})
	if len(q.waiting[client]) == 0 {
		q.order = append(q.order, client)
	}
	q.waiting[client] = append(q.waiting[client], slot)
	q.mu.Unlock()
	select {
	case <-slot:
		if ctx.Err() == nil {
			return nil
		}
		q.release()
	case <-ctx.Done():
		q.leave(client, slot)
	}
	return ctx.Err()
}

// release is the end of acquire.
func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		q.free++
		return
	}
	client := q.order[0]
	given := q.waiting[client][0]
	q.order = q.order[1:]
	if q.drop(client, 0); len(q.waiting[client]) > 0 {
		q.order = append(q.order, client)
	}
	q.given++
	close(given)
}

// leave removes a client that has given up from the queue, or hands on its slot if that has come meanwhile.
func (q *Queue) leave(client string, slot chan struct{}) {
	q.mu.Lock()
	i := slices.Index(q.waiting[client], slot)
	if i < 0 {
		q.mu.Unlock()
		q.release()
		return
	}
	if q.drop(client, i); len(q.waiting[client]) == 0 {
		q.order = slices.DeleteFunc(q.order, func(c string) bool { return c == client })
	}
	q.mu.Unlock()
}

func (q *Queue) drop(client string, i int) {
	if q.waiting[client] = slices.Delete(q.waiting[client], i, i+1); len(q.waiting[client]) == 0 {
		delete(q.waiting, client)
	}
}

// Run does long work, which reports (done, total) between evaluations. At every report it releases its slot and queues
// again, and calls report if that is not nil. It gets no slot back after its context has ended.
func (q *Queue) Run(
	ctx context.Context, report func(done, total int), f func(report func(done, total int)) error,
) error {
	if err := q.Acquire(ctx); err != nil {
		return err
	}
	holds := true
	defer func() {
		if holds {
			q.Release()
		}
	}()
	return f(func(done, total int) {
		if !holds {
			return
		}
		q.Release()
		if holds = q.Acquire(ctx) == nil; holds && report != nil {
			report(done, total)
		}
	})
}

// Load returns how many requests wait, and how many slots were given so far.
func (q *Queue) Load() (waiting int, slots uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, queued := range q.waiting {
		waiting += len(queued)
	}
	return waiting, q.given
}
