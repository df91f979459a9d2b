package device

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/gomlx/backends"
)

// Run executes the program, waits for the device, and returns the outputs, new buffers that the caller releases. ctx
// can end the compilation and prevent the start, but does not interrupt a run.
//
// A program made with [Together] takes one argument on each of devices 0, 1, …, and returns one output on each. Such
// runs do not overlap.
//
// Errors are [*ProgramError]. If the arguments do not fit, no buffer changes; the error wraps [ErrDonated] or
// [ErrReleased] for a buffer that is not live. If the run itself fails, donated buffers are lost.
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

// launch executes a program on locked arguments, and marks donated ones.
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
		a.buf.raw, a.buf.gone = nil, ErrDonated
		a.buf.dev.held.Add(-int64(a.buf.shape.Memory()))
		// After a failed run, XLA leaves donated buffers to us. The pure-Go backend may have reused the memory, which the
		// garbage collector frees.
		if err != nil && p.dev.plugin != nil {
			p.dev.free(in[i])
		}
	}
	if err != nil {
		return nil, err
	}
	return p.adopt(out)
}

// adopt makes buffers of a run's outputs; with several devices, the k-th is on device k. Asking the backend for a shape
// also fills go-xla's record of it, which it would otherwise write without a lock when several goroutines read.
func (p *Program) adopt(out []backends.Buffer) ([]*Buffer, error) {
	res := make([]*Buffer, len(out))
	for i, raw := range out {
		shape, err := p.dev.backend.BufferShape(raw)
		if err != nil { // the collector frees what is left
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

// Together makes a program that runs on the first n devices of the backend at once and may exchange values between
// them; see graph.Graph.Distributed. It must have one parameter and one output: with more outputs go-xla reads past
// the end of a list.
func Together(n int) ProgramOption { return func(p *Program) { p.share = n } }
