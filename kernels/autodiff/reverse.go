package autodiff

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// reverse: y = x with some axes run backwards; its own adjoint.
func reverse(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{Reverse(v, nodes.Of(node).Ints("axes")...)}
}

// Reverse runs x's entries backwards along the axes. The pure-Go backend has
// no such operation; there single entries are concatenated, which costs nothing
// worth mentioning for the kernels (3×3) it is used on.
func Reverse(x *graph.Node, axes ...int) *graph.Node {
	if x.Graph().Backend().Capabilities().Operations[backends.OpTypeReverse] {
		return graph.Reverse(x, axes...)
	}
	for _, axis := range axes {
		n := x.Shape().Dimensions[axis]
		parts := make([]*graph.Node, n)
		for i := range parts {
			parts[i] = graph.SliceAxis(x, axis, graph.AxisRange(n-1-i, n-i))
		}
		if n > 1 {
			x = graph.Concatenate(parts, axis)
		}
	}
	return x
}
