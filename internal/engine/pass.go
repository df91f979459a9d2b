package engine

import (
	"context"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
)

// pass is long work of a lower floor that reports (done, total) between evaluations. It shares the device: at every report
// it gives its seat to whoever waits.
type pass struct {
	ctx    context.Context
	cancel context.CancelFunc
	turns  turns
	emit   func(api.Event) error
	err    error // of emit, or of waiting
	seated bool
	last   time.Time
}

// run does the work f with a context that ends when nobody listens any more.
func (t turns) run(ctx context.Context, emit func(api.Event) error, f func(ctx context.Context, report func(done, total int)) error) error {
	p := &pass{turns: t, emit: emit}
	p.ctx, p.cancel = context.WithCancel(ctx)
	defer p.cancel()
	if p.sit(); p.err != nil {
		return p.err
	}
	defer p.rise()
	err := f(p.ctx, p.report)
	if p.err != nil {
		return p.err
	}
	return err
}

func (p *pass) sit() {
	if err := p.turns.acquire(p.ctx); err != nil {
		p.fail(err)
		return
	}
	p.seated = true
}

func (p *pass) rise() {
	if p.seated {
		p.turns.release()
		p.seated = false
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
	p.rise()
	if now := time.Now(); now.Sub(p.last) >= progressEvery {
		p.last = now
		if err := p.emit(api.Event{Meta: api.Progress(done, total)}); err != nil {
			p.fail(err)
			return
		}
	}
	p.sit()
}
