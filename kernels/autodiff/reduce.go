package autodiff

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// extremum is the rule of ReduceMax and ReduceMin: v goes to every entry equal
// to the extremum. The library compares by the sign of a difference, which XLA
// may contract with the product that made x to a fused multiply-add; then no
// entry is equal any more. A comparison cannot be contracted.
func extremum(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	dims := x.Shape().Clone().Dimensions
	axes := nodes.Of(node).Ints("axes")
	if len(axes) == 0 {
		axes = count(0, x.Rank())
	}
	for _, axis := range axes {
		dims[axis] = 1
	}
	full := func(n *graph.Node) *graph.Node {
		return graph.BroadcastToDims(graph.Reshape(n, dims...), x.Shape().Dimensions...)
	}
	return []*graph.Node{graph.Where(graph.Equal(x, full(node)), full(v), graph.ZerosLike(x))}
}
