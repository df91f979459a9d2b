package graphnet

import (
	"errors"
	"fmt"
	"sync"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// board draws graphs without computing anything.
var board = sync.OnceValues(func() (*device.Device, error) { return device.Open(device.Config{Plugin: "go"}) })

// drawBatch is the batch that a graph is drawn with: one that no size of a file's is by chance.
const drawBatch = 7

// draw builds a network once and returns what does not fit together.
func draw(n kernels.RawNetwork) error {
	dev, err := board()
	if err != nil {
		return err
	}
	cost, err := dev.Cost(n.Spec().Key, func(g *graph.Graph) []*graph.Node { return []*graph.Node{drawn(n, g)} })
	var bad *nn.ConfigError
	switch {
	case errors.As(err, &bad):
		return bad
	case err != nil:
		return graphError("%s", shortLine(err.Error()))
	case cost.FLOPs < 0 || float64(cost.FLOPs) > maxFLOPs*drawBatch:
		return graphError("one evaluation takes %.3g operations an image; at most %.3g",
			float64(cost.FLOPs)/drawBatch, maxFLOPs)
	}
	return nil
}

func drawn(n kernels.RawNetwork, g *graph.Graph) *Node {
	arg := func(name string, dims ...int) *Node {
		return graph.Parameter(g, name, shapes.Make(lib.Float32, dims...))
	}
	var values []*Node
	for i, p := range n.Params() {
		values = append(values, arg(fmt.Sprintf("p%d", i), p.DeviceShape()...))
	}
	spec := n.Spec()
	z := arg("z", drawBatch, spec.Height, spec.Width, spec.Channels)
	var ratios, label *Node
	if spec.Ratios > 0 {
		ratios = arg("ratios", drawBatch, spec.Ratios)
	}
	if spec.Labels > 0 {
		label = arg("label", drawBatch, spec.Labels)
	}
	return n.Raw(nn.NewScope(n.Params(), values), z, arg("noise", drawBatch), ratios, label)
}
