package collective

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// Sum returns Σ_k x_k on each of the first len(x) devices of a backend, where x_k lies on device k and all are of one
// shape. The x_k are given up, unless an error comes before the run. A single one is its own sum.
//
// On XLA for CPU the terms are added in the order of the devices, (x_0 + x_1) + x_2 + …, so that the bits are those of
// that sum on one device (TestSumIsInOrder). On GPUs the order is the collective library's.
func Sum(ctx context.Context, x []*device.Buffer) ([]*device.Buffer, error) {
	if len(x) == 1 {
		return x, nil
	}
	shape := shapes.Make(x[0].DType(), x[0].Dims()...)
	p, err := x[0].Device().Program(ctx, fmt.Sprintf("sum over %d %s", len(x), shape),
		func(g *graph.Graph) []*graph.Node {
			own := graph.Parameter(g, device.Donated("x"), shape)
			return []*graph.Node{g.Distributed().AllReduceOne(own, backends.ReduceOpSum)}
		}, device.Together(len(x)))
	if err != nil {
		return nil, err
	}
	args := make([]device.Arg, len(x))
	for k, b := range x {
		args[k] = device.Donate(b)
	}
	return p.RunTogether(ctx, args...)
}
