package device

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/gomlx/backends"
)

// Run executes the program and returns its outputs, new buffers that the caller releases. It blocks the goroutine until
// the device is done. ctx is looked at while the program is being compiled and before it starts, not while it runs.
//
// A program made with [Together] takes one argument of device 0, 1, …, and gives one output of each. Such runs go one
// after the other, so that no two can wait for each other.
//
// Errors are [*ProgramError]. Arguments that do not fit (their error wraps [ErrDonated] or [ErrReleased] for dead
// buffers) leave every buffer as it was. When the run itself fails, donated buffers are lost.
func (p *Program) Run(ctx context.Context, args ...Arg) ([]*Buffer, error) {
	d := p.dev
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	exe, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer exe.release()
	if err := p.fit(exe.inputs, args); err != nil {
		return nil, err
	}
	unlock, err := lock(p.key, args)
	if err != nil {
		return nil, err
	}
	defer unlock()
	switch {
	case p.share > 0:
		d.together.Lock()
		defer d.together.Unlock()
	case d.hostVisible && len(d.devices) > 1:
		d.together.RLock()
		defer d.together.RUnlock()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.launch(exe, args)
}

// launch executes a program on arguments that are locked, and gives up those that are donated.
func (p *Program) launch(exe *executable, args []Arg) ([]*Buffer, error) {
	in := make([]backends.Buffer, len(args))
	donate := make([]bool, len(args))
	for i, a := range args {
		in[i], donate[i] = a.buf.raw, a.donate
	}
	began := time.Now()
	out, err := execute(p.key, exe.exec, in, donate, p.dev.ordinal)
	if err == nil {
		p.dev.count(p.key, p.flops, time.Since(began))
	}
	for i, a := range args {
		if !a.donate {
			continue
		}
		a.buf.state, a.buf.raw = donated, nil
		a.buf.dev.held.Add(-int64(a.buf.shape.Memory()))
		// XLA leaves the husks of a failed run's donations to us. The pure-Go backend may have handed the memory on: that is
		// the collector's.
		if err != nil && p.dev.plugin != nil {
			p.dev.free(in[i])
		}
	}
	if err != nil {
		return nil, err
	}
	return p.adopt(out)
}

// adopt makes buffers of a run's outputs, the k-th of one on several devices on device k. Asking the backend for their
// shapes here also fills go-xla's own record of them, which it would otherwise write unguarded at the first of several
// concurrent reads.
func (p *Program) adopt(out []backends.Buffer) ([]*Buffer, error) {
	res := make([]*Buffer, len(out))
	for i, raw := range out {
		shape, err := p.dev.backend.BufferShape(raw)
		if err != nil {
			for _, raw := range out {
				p.dev.free(raw)
			}
			for _, b := range res[:i] {
				b.dev.held.Add(-int64(b.shape.Memory()))
			}
			return nil, &ProgramError{Key: p.key, Phase: "run", Err: fmt.Errorf("output %d: %w", i, err)}
		}
		owner := p.dev
		if p.share > 0 {
			owner = p.dev.devices[i]
		}
		res[i] = newBuffer(owner, raw, shape)
	}
	return res, nil
}

func execute(key string, exec backends.Executable, in []backends.Buffer, donate []bool,
	ordinal backends.DeviceNum,
) (out []backends.Buffer, err error) {
	defer recovered(key, "run", &err)
	out, err = exec.Execute(in, donate, ordinal)
	if err != nil {
		return nil, &ProgramError{Key: key, Phase: "run", Err: err}
	}
	return out, nil
}

// Together makes a program that runs on the first n devices of its device's backend at once, where it may compute with
// values of the others: see graph.Graph.Distributed. It must have one parameter and one output: of more outputs go-xla
// would read past the end of the first device's list.
func Together(n int) ProgramOption { return func(p *Program) { p.share = n } }
