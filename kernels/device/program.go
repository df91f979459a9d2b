package device

import (
	"context"
	"errors"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// Program is a function on the device: a graph for one set of shapes and types. It may be kept as long as its device
// and run by many goroutines at once. Where the cache has dropped its executable meanwhile, Run compiles it again.
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

// AllowTF32 lets the products of a program round their factors from float32 to TensorFloat-32 (8 bits of exponent, 10
// of mantissa) on devices that multiply those faster, as NVIDIA's do since Ampere. Without it products of float32 are
// exact to float32. CPU plugins and the pure-Go backend compute in float32 either way.
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
// build draws the graph: its parameters in the order in which Run takes them, and the nodes it returns. It may panic,
// as gomlx's functions do, and it may be called again later. key names all that build depends on (function, shapes,
// types, options): equal keys share one executable, whoever built it. Its first word is the kind under which
// [Device.Work] counts the runs.
//
// Callers of one key wait for one compilation. When ctx ends first, Program returns its error, and the compilation goes
// on for the next caller. Other errors are [*MemoryError], [*ProgramError] and [ErrClosed].
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

// Key returns the program's key.
func (p *Program) Key() string { return p.key }

// FLOPs counts the floating-point operations of one run: those of its convolutions and matrix products, a multiply-add
// being two.
func (p *Program) FLOPs() int64 { return p.flops }

// acquire returns the program's executable for the length of one run, which ends with its release.
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
	into := &capturing{Backend: p.dev.backend}
	g, nodes, err := draw(into, p, p.module())
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
	_, inputs := into.exec.Inputs()
	return &executable{exec: into.exec, inputs: inputs, seconds: time.Since(start).Seconds(), flops: flops}, nil
}

// checkMemory refuses a program whose outputs and temporaries would not fit. Arguments lie on the device already, or
// are small beside them.
func (p *Program) checkMemory(m Memory) error {
	available, known := p.dev.Available()
	if needed := m.Total() - m.Arguments; known && needed > available {
		return &MemoryError{Key: p.key, Needed: needed, Available: available}
	}
	return nil
}

func draw(backend backends.Backend, p *Program, module string) (g *graph.Graph, nodes []*graph.Node, err error) {
	defer recovered(p.key, "build", &err)
	g = graph.NewGraph(backend, module)
	if p.share > 0 {
		mesh, err := distributed.NewDeviceMesh([]int{p.share}, []string{"device"})
		if err == nil {
			err = g.SetSPMD(mesh)
		}
		if err != nil {
			return nil, nil, &ProgramError{Key: p.key, Phase: "build", Err: err}
		}
	}
	nodes = p.build(g)
	if len(nodes) == 0 {
		return nil, nil, &ProgramError{Key: p.key, Phase: "build", Err: errors.New("the graph has no outputs")}
	}
	if p.share > 0 && (len(nodes) > 1 || g.NumParameters() != 1) {
		err := errors.New("it must have one parameter and one output")
		return nil, nil, &ProgramError{Key: p.key, Phase: "build", Err: err}
	}
	return g, nodes, nil
}

func finish(p *Program, g *graph.Graph, nodes []*graph.Node) (err error) {
	defer recovered(p.key, "compile", &err)
	g.Compile(nodes...)
	return nil
}

// capturing hands out builders that remember the executable they compile. A graph keeps all its nodes as long as it
// lives, and its executable is all that a run needs.
type capturing struct {
	backends.Backend
	exec backends.Executable
}

type capturingBuilder struct {
	backends.Builder
	into *capturing
}

// Builder returns the backend's builder, watched.
func (c *capturing) Builder(name string) backends.Builder {
	return &capturingBuilder{Builder: c.Backend.Builder(name), into: c}
}

// Compile keeps what the watched builder compiles.
func (b *capturingBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable,
	error,
) {
	exec, err := b.Builder.Compile(outputs, shardings)
	b.into.exec = exec
	return exec, err
}
