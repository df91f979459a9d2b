package device

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// Program is a function on the device: a graph for one set of shapes and types.
// It may be kept as long as its device and run by many goroutines at once. Where
// the cache has dropped its executable meanwhile, Run compiles it again.
type Program struct {
	dev   *Device
	key   string
	build func(g *graph.Graph) []*graph.Node
	flops int64
	tf32  bool
	share int // devices that one run takes together; 0: one, whichever it is
}

// ProgramOption changes how a program is compiled.
type ProgramOption func(*Program)

// AllowTF32 lets the products of a program round their factors from float32 to
// TensorFloat-32 (8 bits of exponent, 10 of mantissa) on devices that multiply those
// faster, as NVIDIA's do since Ampere. Without it products of float32 are exact to
// float32. CPU plugins and the pure-Go backend compute in float32 either way.
func AllowTF32(p *Program) { p.tf32 = true }

// module is the name of the program's module, by which the plugin's shim knows it.
func (p *Program) module() string {
	if p.tf32 {
		return shim.TF32Module
	}
	return "main"
}

// Program returns the program of that key, compiling it if the cache has none.
//
// build draws the graph: its parameters in the order in which Run takes them, and
// the nodes it returns. It may panic, as gomlx's functions do, and it may be
// called again later. key names all that build depends on (function, shapes,
// types, options): equal keys share one executable, whoever built it. Its first word
// is the kind under which [Device.Work] counts the runs.
//
// Callers of one key wait for one compilation. When ctx ends first, Program
// returns its error, and the compilation goes on for the next caller. Other
// errors are [*MemoryError], [*ProgramError] and [ErrClosed].
func (d *Device) Program(ctx context.Context, key string, build func(g *graph.Graph) []*graph.Node,
	options ...ProgramOption,
) (*Program, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	p := &Program{dev: d, key: key, build: build}
	for _, option := range options {
		option(p)
	}
	exe, err := d.programs.acquire(ctx, p)
	if err != nil {
		return nil, err
	}
	p.flops = exe.flops
	exe.release()
	return p, nil
}

// Key returns the program's key.
func (p *Program) Key() string { return p.key }

// FLOPs counts the floating-point operations of one run: those of its convolutions and
// matrix products, a multiply-add being two.
func (p *Program) FLOPs() int64 { return p.flops }

// Run executes the program and returns its outputs, new buffers that the caller
// releases. It blocks the goroutine until the device is done; ctx is looked at
// while the program is being compiled and before it starts, not while it runs.
//
// Arguments that do not fit give an [*ArgumentError] (which wraps [ErrDonated] or
// [ErrReleased] for dead buffers) and leave every buffer as it was. A failure of
// the run itself is a [*ProgramError]; donated buffers are lost.
func (p *Program) Run(ctx context.Context, args ...Arg) ([]*Buffer, error) {
	if err := p.dev.enter(); err != nil {
		return nil, err
	}
	defer p.dev.leave()
	exe, err := p.dev.programs.acquire(ctx, p)
	if err != nil {
		return nil, err
	}
	defer exe.release()
	if err := fit(p, exe.inputs, args); err != nil {
		return nil, err
	}
	unlock, err := lock(p, args)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if d := p.dev; d.hostVisible && len(d.devices) > 1 {
		d.together.RLock()
		defer d.together.RUnlock()
	}
	out, err := p.launch(exe, args)
	if err != nil {
		return nil, err
	}
	return p.adopt(out)
}

// launch executes a program on arguments that are locked, and gives up those that are donated.
func (p *Program) launch(exe *executable, args []Arg) ([]backends.Buffer, error) {
	in := make([]backends.Buffer, len(args))
	donate := make([]bool, len(args))
	for i, a := range args {
		in[i], donate[i] = a.buf.raw, a.donate
	}
	began := time.Now()
	out, err := execute(p.key, exe.exec, in, donate, p.dev.ordinal)
	if err == nil {
		p.dev.work.add(p, time.Since(began))
	}
	for i, a := range args {
		if !a.donate {
			continue
		}
		a.buf.state, a.buf.raw = donated, nil
		a.buf.dev.held.Add(-int64(a.buf.shape.Memory()))
		// XLA leaves the husks of a failed run's donations to us. The pure-Go
		// backend may have handed the memory on: that is the collector's.
		if err != nil && !p.dev.pureGo {
			p.dev.free(in[i])
		}
	}
	return out, err
}

// adopt makes buffers of a run's outputs, the k-th of one on several devices on
// device k. Asking the backend for their shapes
// here also fills go-xla's own record of them, which it would otherwise write
// unguarded at the first of several concurrent reads.
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
		on := p.dev
		if p.share > 0 {
			on = p.dev.devices[i]
		}
		res[i] = newBuffer(on, raw, shape)
	}
	return res, nil
}

func execute(key string, exec backends.Executable, in []backends.Buffer, donate []bool,
	on backends.DeviceNum,
) (out []backends.Buffer, err error) {
	defer recovered(key, "run", &err)
	out, err = exec.Execute(in, donate, on)
	if err != nil {
		return nil, &ProgramError{Key: key, Phase: "run", Err: err}
	}
	return out, nil
}
