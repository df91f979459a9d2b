package device

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// compile draws a program's graph and compiles it.
func compile(backend backends.Backend, p *Program) (*executable, error) {
	start := time.Now()
	into := &capturing{Backend: backend}
	g, nodes, err := draw(into, p)
	if err != nil {
		return nil, err
	}
	flops := countFLOPs(nodes)
	if err := p.checkMemory(estimateMemory(nodes)); err != nil {
		return nil, err
	}
	if err := finish(p, g, nodes); err != nil {
		return nil, err
	}
	_, inputs := into.exec.Inputs()
	return &executable{exec: into.exec, inputs: inputs, seconds: time.Since(start).Seconds(), flops: flops}, nil
}

// checkMemory refuses a program whose outputs and temporaries would not fit. Arguments
// lie on the device already, or are small beside them.
func (p *Program) checkMemory(m Memory) error {
	available, known := p.dev.Available()
	if needed := m.Total() - m.Arguments; known && needed > available {
		return &MemoryError{Key: p.key, Needed: needed, Available: available}
	}
	return nil
}

func draw(backend backends.Backend, p *Program) (g *graph.Graph, nodes []*graph.Node, err error) {
	defer recovered(p.key, "build", &err)
	g = graph.NewGraph(backend, p.module())
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
	return g, nodes, nil
}

func finish(p *Program, g *graph.Graph, nodes []*graph.Node) (err error) {
	defer recovered(p.key, "compile", &err)
	g.Compile(nodes...)
	return nil
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

// capturing hands out builders that remember the executable they compile. A graph
// keeps all its nodes as long as it lives, and its executable is all that a run needs.
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
