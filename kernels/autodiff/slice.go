package autodiff

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// slice: y = x[start:limit:stride] along every axis. The adjoint puts v back
// among zeros, axis by axis, with Concatenate, whose own rule is Slice.
func slice(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	a := nodes.Of(node)
	starts, strides := a.Ints("starts"), a.Ints("strides")
	for axis, size := range x.Shape().Dimensions {
		stride := 1
		if len(strides) > 0 {
			stride = strides[axis]
		}
		v = embed(v, axis, starts[axis], stride, size)
	}
	return []*graph.Node{v}
}

// embed returns the array of the given size along axis that holds v's entries
// at start, start+stride, ... and zeros elsewhere.
func embed(v *graph.Node, axis, start, stride, size int) *graph.Node {
	if stride > 1 {
		v = spread(v, axis, stride)
		if over := start + v.Shape().Dimensions[axis] - size; over > 0 {
			v = graph.SliceAxis(v, axis, graph.AxisRange(0, size-start))
		}
	}
	parts := []*graph.Node{v}
	if start > 0 {
		parts = []*graph.Node{zeros(v, axis, start), v}
	}
	if rest := size - start - v.Shape().Dimensions[axis]; rest > 0 {
		parts = append(parts, zeros(v, axis, rest))
	}
	if len(parts) == 1 {
		return v
	}
	return graph.Concatenate(parts, axis)
}

// spread puts stride−1 zeros after every entry along axis.
func spread(v *graph.Node, axis, stride int) *graph.Node {
	dims := v.Shape().Clone().Dimensions
	v = graph.InsertAxes(v, axis+1)
	v = graph.Concatenate([]*graph.Node{v, zeros(v, axis+1, stride-1)}, axis+1)
	dims[axis] *= stride
	return graph.Reshape(v, dims...)
}

// zeros has the shape of v, but for n entries along axis.
func zeros(v *graph.Node, axis, n int) *graph.Node {
	s := v.Shape().Clone()
	s.Dimensions[axis] = n
	return graph.Zeros(v.Graph(), s)
}
