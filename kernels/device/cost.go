package device

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Cost is what one run of a program takes.
type Cost struct {
	FLOPs  int64  // see [Program.FLOPs]; exact
	Memory Memory // an estimate: what the compiler will need is known when it has compiled
}

// Cost draws a program's graph, as [Device.Program] would, and counts what a run would
// take. Nothing is compiled and nothing is kept.
func (d *Device) Cost(key string, build func(g *graph.Graph) []*graph.Node) (c Cost, err error) {
	if err := d.enter(); err != nil {
		return c, err
	}
	defer d.leave()
	g, outputs, err := draw(d.backend, &Program{key: key, build: build})
	if err != nil {
		return c, err
	}
	defer g.Finalize()
	return Cost{FLOPs: countFLOPs(outputs), Memory: estimateMemory(outputs)}, nil
}
