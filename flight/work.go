package flight

import (
	"context"
	"errors"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
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
