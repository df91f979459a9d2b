package batch

import (
	"context"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
)

// pass is long work of a lower floor that reports (done, total) between evaluations. It shares the device: at every
// report it hands its slot to whoever waits.
type pass struct {
	ctx    context.Context
	cancel context.CancelFunc
	queue  *Queue
	emit   func(api.Event) error
	err    error // of emit, or of waiting
	holds  bool  // a slot
	last   time.Time
}

// Run does the work f with a context that ends when nobody listens any more. Progress goes to emit now and then.
func (q *Queue) Run(
	ctx context.Context, emit func(api.Event) error, f func(ctx context.Context, report func(done, total int)) error,
) error {
	p := &pass{queue: q, emit: emit}
	p.ctx, p.cancel = context.WithCancel(ctx)
	defer p.cancel()
	if p.acquire(); p.err != nil {
		return p.err
	}
	defer p.release()
	err := f(p.ctx, p.report)
	if p.err != nil {
		return p.err
	}
	return err
}

func (p *pass) acquire() {
	if err := p.queue.Acquire(p.ctx); err != nil {
		p.fail(err)
		return
	}
	p.holds = true
}

func (p *pass) release() {
	if p.holds {
		p.queue.Release()
		p.holds = false
	}
}

func (p *pass) fail(err error) {
	p.err = err
	p.cancel()
}

func (p *pass) report(done, total int) {
	if p.err != nil {
		return
	}
	p.release()
	if now := time.Now(); now.Sub(p.last) >= api.ProgressEvery {
		p.last = now
		if err := p.emit(api.Event{Meta: api.Progress(done, total)}); err != nil {
			p.fail(err)
			return
		}
	}
	p.acquire()
}
