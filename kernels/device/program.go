package device

import (
	"context"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// Program is a function on the device: a graph for one set of shapes and types. Many goroutines may run it at once. If
// the cache has dropped its executable, Run compiles it again.
type Program struct {
	dev   *Device
	key   string
	build func(g *graph.Graph) []*graph.Node
	flops int64
	tf32  bool
	share int // number of devices that one run uses together; 0 means any one
}

// ProgramOption changes how a program is compiled.
type ProgramOption func(*Program)

// AllowTF32 lets the products of a program round their factors to TensorFloat-32 (8 bits of exponent, 10 of mantissa)
// on devices that multiply those faster, as NVIDIA's do since Ampere. Other devices always compute in float32.
func AllowTF32(p *Program) { p.tf32 = true }

// module returns the name of the program's module, from which the plugin's shim knows how to compile it.
func (p *Program) module() string {
	if p.tf32 {
		return shim.TF32Module
	}
	return "main"
}

// Program returns the program of that key, and compiles it if it is not in the cache.
//
// build draws the graph, with its parameters in the order of Run's arguments, and returns the outputs. It may panic, as
// gomlx's functions do, and it may be called again later. key names everything that build depends on (function, shapes,
// types, options), because equal keys share one executable. Its first word is the kind in [Device.Work].
//
// Callers of one key wait for one compilation. If ctx ends first, Program returns its error, and the compilation
// continues for the next caller. Other errors are [*MemoryError], [*ProgramError] and [ErrClosed].
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
	exe, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	p.flops = exe.flops
	exe.release()
	return p, nil
}

// FLOPs returns the floating-point operations of one run: those of its convolutions and matrix products. A multiply-add
// counts as two.
func (p *Program) FLOPs() int64 { return p.flops }

// acquire returns the program's executable for one run, which ends with its release.
func (p *Program) acquire(ctx context.Context) (*executable, error) {
	return p.dev.programs.acquire(ctx, p.key, p.compile)
}

// compile draws the program's graph and compiles it.
func (p *Program) compile() (*executable, error) {
	if lower := p.dev.cfg.Lower; lower != nil && p.dev.plugin != nil {
		if written, err := p.lower(); err != nil {
			return nil, err
		} else if lower(written) {
			return nil, ErrLowered
		}
	}
	start := time.Now()
	backend := &capturing{Backend: p.dev.backend}
	g, nodes, err := draw(backend, p, p.module())
	if err != nil {
		return nil, err
	}
	flops := countFLOPs(nodes)
	if err := p.checkMemory(estimateMemory(nodes, p.dev.kind())); err != nil {
		return nil, err
	}
	if err := finish(p, g, nodes); err != nil {
		return nil, err
	}
	_, inputs := backend.exec.Inputs()
	return &executable{exec: backend.exec, inputs: inputs, seconds: time.Since(start).Seconds(), flops: flops}, nil
}

// checkMemory refuses a program whose outputs and temporaries do not fit. Arguments are on the device already, or
// small.
func (p *Program) checkMemory(m Memory) error {
	available, known := p.dev.Available()
	if needed := m.Total() - m.Arguments; known && needed > available {
		return &MemoryError{Key: p.key, Needed: needed, Available: available}
	}
	return nil
}

// draw draws the program's graph. A panic is returned as an error.
func draw(backend backends.Backend, p *Program, module string) (g *graph.Graph, nodes []*graph.Node, err error) {
	defer recovered(p.key, "build", &err)
	g = graph.NewGraph(backend, module)
	if p.share > 0 {
		mesh, err := distributed.NewDeviceMesh([]int{p.share}, []string{"device"})
		if err == nil {
			err = g.SetSPMD(mesh)
		}
		if err != nil {
			panic(err)
		}
	}
	nodes = p.build(g)
	if len(nodes) == 0 {
		panic("the graph has no outputs")
	}
	if p.share > 0 && (len(nodes) > 1 || g.NumParameters() != 1) {
		panic("it must have one parameter and one output")
	}
	return g, nodes, nil
}

func finish(p *Program, g *graph.Graph, nodes []*graph.Node) (err error) {
	defer recovered(p.key, "compile", &err)
	g.Compile(nodes...)
	return nil
}

// capturing keeps the executable that its builders compile, so that the graph, which keeps all its nodes, can be freed.
type capturing struct {
	backends.Backend
	exec backends.Executable
}

type capturingBuilder struct {
	backends.Builder
	backend *capturing
}

// Builder implements [backends.Backend].
func (c *capturing) Builder(name string) backends.Builder {
	return &capturingBuilder{Builder: c.Backend.Builder(name), backend: c}
}

// Compile implements [backends.Builder].
func (b *capturingBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable,
	error,
) {
	exec, err := b.Builder.Compile(outputs, shardings)
	b.backend.exec = exec
	return exec, err
}
