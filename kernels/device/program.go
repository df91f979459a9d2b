package device

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// Program is a function on the device: a graph for one set of shapes and types.
// It may be kept as long as its device and run by many goroutines at once. Where
// the cache has dropped its executable meanwhile, Run compiles it again.
type Program struct {
	dev   *Device
	key   string
	build Build
}

// Build draws a program's graph: its parameters in the order in which Run takes
// them, and the nodes it returns. It may panic, as gomlx's functions do.
type Build func(g *graph.Graph) []*graph.Node

// Arg is one argument of [Program.Run].
type Arg struct {
	buf    *Buffer
	donate bool
}

// Use passes a buffer that stays live.
func Use(b *Buffer) Arg { return Arg{buf: b} }

// Donate passes a buffer and gives it up: the run may write its outputs over it.
// From the start of the run on the buffer is unusable, even if the run fails.
func Donate(b *Buffer) Arg { return Arg{buf: b, donate: true} }

// Program returns the program of that key, compiling it if the cache has none.
// key names all that build depends on (function, shapes, types, options): equal
// keys share one executable, whoever built it. Callers of one key wait for one
// compilation. When ctx ends first Program returns its error, and the compilation
// goes on for the next caller.
//
// Errors are [*ProgramError], [ErrClosed] or ctx's.
func (d *Device) Program(ctx context.Context, key string, build func(g *graph.Graph) []*graph.Node) (*Program, error) {
	p := &Program{dev: d, key: key, build: build}
	exe, err := d.programs.acquire(ctx, p)
	if err != nil {
		return nil, err
	}
	exe.release()
	return p, nil
}

// Key returns the program's key.
func (p *Program) Key() string { return p.key }

// Run executes the program and returns its outputs, new buffers that the caller
// releases. It blocks the goroutine until the device is done; ctx is looked at
// before the run starts, and while the program is being compiled.
//
// Arguments that do not fit give an [*ArgumentError] (which wraps [ErrDonated],
// [ErrReleased] or [ErrClosed] for dead buffers) and leave every buffer as it
// was. A failure of the run itself is a [*ProgramError]; donated buffers are lost.
func (p *Program) Run(ctx context.Context, args ...Arg) ([]*Buffer, error) {
	exe, err := p.dev.programs.acquire(ctx, p)
	if err != nil {
		return nil, err
	}
	defer exe.release()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.dev.mu.RLock()
	defer p.dev.mu.RUnlock()
	if p.dev.closed {
		return nil, ErrClosed
	}
	if err := p.check(exe, args); err != nil {
		return nil, err
	}
	unlock, err := p.lock(args)
	if err != nil {
		return nil, err
	}
	defer unlock()

	in := make([]backends.Buffer, len(args))
	donate := make([]bool, len(args))
	for i, a := range args {
		in[i], donate[i] = a.buf.raw, a.donate
		if a.donate {
			a.buf.state = donated
		}
	}
	out, err := execute(p.key, exe.exec, in, donate)
	for _, a := range args {
		if !a.donate {
			continue
		}
		if err != nil && p.dev.hostMemory() {
			a.buf.raw = nil // the pure-Go backend may have handed the memory on; leave it to the collector
		}
		if err != nil {
			a.buf.finalize()
		}
		a.buf.raw = nil
	}
	if err != nil {
		return nil, err
	}
	res := make([]*Buffer, len(out))
	for i, raw := range out {
		res[i] = newBuffer(p.dev, raw, exe.outputs[i])
	}
	return res, nil
}

// check compares the arguments with the program's parameters.
func (p *Program) check(exe *executable, args []Arg) error {
	if len(args) != len(exe.inputs) {
		return &ArgumentError{Key: p.key, Index: -1, Err: fmt.Errorf("got %d arguments, want %d", len(args), len(exe.inputs))}
	}
	for i, a := range args {
		switch {
		case a.buf == nil:
			return &ArgumentError{Key: p.key, Index: i, Err: errors.New("nil buffer")}
		case a.buf.dev != p.dev:
			return &ArgumentError{Key: p.key, Index: i, Err: errors.New("buffer belongs to another device")}
		case !a.buf.shape.Equal(exe.inputs[i]):
			return &ArgumentError{Key: p.key, Index: i, Err: fmt.Errorf("got %s, want %s", a.buf.shape, exe.inputs[i])}
		}
		for _, b := range args[:i] {
			if a.buf == b.buf && (a.donate || b.donate) {
				return &ArgumentError{Key: p.key, Index: i, Err: errors.New("buffer is passed twice and donated")}
			}
		}
	}
	return nil
}

// lock takes every argument's lock, exclusive for donations, in the order of the
// buffers' ids so that concurrent runs cannot wait for each other in a circle.
func (p *Program) lock(args []Arg) (unlock func(), err error) {
	order := slices.Clone(args)
	slices.SortFunc(order, func(a, b Arg) int {
		switch {
		case a.buf.id < b.buf.id:
			return -1
		case a.buf.id > b.buf.id:
			return 1
		}
		return 0
	})
	order = slices.CompactFunc(order, func(a, b Arg) bool { return a.buf == b.buf })
	for _, a := range order {
		if a.donate {
			a.buf.mu.Lock()
		} else {
			a.buf.mu.RLock()
		}
	}
	unlock = func() {
		for _, a := range order {
			if a.donate {
				a.buf.mu.Unlock()
			} else {
				a.buf.mu.RUnlock()
			}
		}
	}
	for i, a := range args {
		if err := a.buf.usable(); err != nil {
			unlock()
			return nil, &ArgumentError{Key: p.key, Index: i, Err: err}
		}
	}
	return unlock, nil
}

func execute(key string, exec backends.Executable, in []backends.Buffer, donate []bool) (out []backends.Buffer, err error) {
	defer recovered(key, "run", &err)
	out, err = exec.Execute(in, donate, 0)
	if err != nil {
		return nil, &ProgramError{Key: key, Phase: "run", Err: err}
	}
	return out, nil
}

// compile draws and compiles a program.
func compile(backend backends.Backend, key string, build Build) (exe *executable, err error) {
	start := time.Now()
	capture := &capturing{Backend: backend}
	nodes, g, err := draw(capture, key, build)
	if err != nil {
		return nil, err
	}
	defer recovered(key, "compile", &err)
	g.Compile(nodes...)
	exec := capture.exec
	_, inputs := exec.Inputs()
	return &executable{exec: exec, inputs: inputs, outputs: exec.Outputs(), seconds: time.Since(start).Seconds()}, nil
}

func draw(backend backends.Backend, key string, build Build) (nodes []*graph.Node, g *graph.Graph, err error) {
	defer recovered(key, "build", &err)
	g = graph.NewGraph(backend, key)
	nodes = build(g)
	if len(nodes) == 0 {
		return nil, nil, &ProgramError{Key: key, Phase: "build", Err: errors.New("the graph has no outputs")}
	}
	return nodes, g, nil
}

// recovered turns a panic into a *ProgramError: the one place where gomlx's
// panics end.
func recovered(key, phase string, err *error) {
	r := recover()
	if r == nil {
		return
	}
	cause, ok := r.(error)
	if !ok {
		cause = fmt.Errorf("%v", r)
	}
	*err = &ProgramError{Key: key, Phase: phase, Err: cause, Stack: debug.Stack()}
}

// capturing hands out builders that remember the executable they compiled. A
// graph keeps its nodes as long as it lives; the executable alone is all a run needs.
type capturing struct {
	backends.Backend
	exec backends.Executable
}

type capturingBuilder struct {
	backends.Builder
	into *capturing
}

func (c *capturing) Builder(name string) backends.Builder {
	return &capturingBuilder{Builder: c.Backend.Builder(name), into: c}
}

func (b *capturingBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	exec, err := b.Builder.Compile(outputs, shardings)
	b.into.exec = exec
	return exec, err
}

// executable is a compiled program in the cache.
type executable struct {
	exec    backends.Executable
	inputs  []shapes.Shape
	outputs []shapes.Shape
	seconds float64 // drawing and compiling

	cache   *cache
	users   int  // runs in progress; guarded by cache.mu
	evicted bool // guarded by cache.mu
}
