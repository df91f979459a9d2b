package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/anisoflight/anisoflight/flight/api"
)

// turns shares the device among requests and runs. Everyone takes a turn for each network evaluation (or training step)
// and queues anew for the next one. Clients take turns one after the other, however many requests each has waiting, and
// the requests of one client in the order of asking: a long request, or a client with many, only ever delays another
// client by one evaluation of each of the others.
type turns struct{ *seats }

// seats are the turns that may be under way at a time.
type seats struct {
	mu      sync.Mutex
	free    int64
	waiting map[string][]chan struct{} // by client; a channel is closed when its turn has come
	order   []string                   // clients that wait, the next first
	taken   uint64                     // turns so far
}

func newTurns(n int64) turns {
	return turns{&seats{free: n, waiting: map[string][]chan struct{}{}}}
}

// take runs f when it is the caller's turn. It gives up when ctx ends, before f or instead of it.
func (t turns) take(ctx context.Context, f func() error) error {
	if err := t.acquire(ctx); err != nil {
		return err
	}
	defer t.release()
	return f()
}

// acquire waits for a turn; release ends it.
func (s *seats) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // a free seat is not for those who no longer want it
		return err
	}
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.taken++
		s.mu.Unlock()
		return nil
	}
	client, turn := api.ClientOf(ctx), make(chan struct{})
	if len(s.waiting[client]) == 0 {
		s.order = append(s.order, client)
	}
	s.waiting[client] = append(s.waiting[client], turn)
	s.mu.Unlock()
	select {
	case <-turn:
		if ctx.Err() == nil {
			return nil
		}
		s.release()
	case <-ctx.Done():
		s.leave(client, turn)
	}
	return ctx.Err()
}

// release hands the seat to who waits next.
func (s *seats) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		s.free++
		return
	}
	client := s.order[0]
	turn := s.waiting[client][0]
	s.order = s.order[1:]
	if s.drop(client, 0); len(s.waiting[client]) > 0 {
		s.order = append(s.order, client)
	}
	s.taken++
	close(turn)
}

// leave takes a turn that nobody wants any more out of the queue, or gives it on if it has come meanwhile.
func (s *seats) leave(client string, turn chan struct{}) {
	s.mu.Lock()
	i := slices.Index(s.waiting[client], turn)
	if i < 0 {
		s.mu.Unlock()
		s.release()
		return
	}
	if s.drop(client, i); len(s.waiting[client]) == 0 {
		s.order = slices.DeleteFunc(s.order, func(c string) bool { return c == client })
	}
	s.mu.Unlock()
}

// drop removes turn i of a client.
func (s *seats) drop(client string, i int) {
	if s.waiting[client] = slices.Delete(s.waiting[client], i, i+1); len(s.waiting[client]) == 0 {
		delete(s.waiting, client)
	}
}

// load tells how many wait, and how many turns have been taken.
func (s *seats) load() (waiting int, taken uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, turns := range s.waiting {
		waiting += len(turns)
	}
	return waiting, s.taken
}
