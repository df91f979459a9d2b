// Package autodiff replaces derivative rules of the graph library, so that networks and losses can be differentiated by
// reverse mode any number of times.
//
// The schedule's gradient needs second derivatives: h = ∇ₓ⟨Jᵀw, z⟩ is a reverse pass over a reverse pass. With the
// library's rules, a convolution's derivative has no derivative, and the derivative of a matrix product computes the
// whole outer product before it sums. The rules here use only operations that have rules: the derivative of a
// convolution is convolutions, of a product products, of a slice concatenations.
//
// Other operations (pooling, grouped convolution, cumulative sums, FFT, padding, custom gradients) keep the library's
// rule, which may be valid to first order only. Do not use them in anything that is differentiated twice.
//
// Begin reading at Install.
package autodiff

import (
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

var once sync.Once

// Install registers the rules in the graph library's table, which is global to the process. Call it before a graph is
// differentiated; it may be called many times, also concurrently.
func Install() { once.Do(register) }

// A rule maps the adjoint v of node's output to the adjoints of node's inputs; nil means zero.
type rule func(node, v *graph.Node) []*graph.Node

func register() {
	for kind, f := range map[graph.NodeType]rule{
		graph.NodeTypeConvGeneral: convGeneral,
		graph.NodeTypeDot:         dot,
		graph.NodeTypeDotGeneral:  dotGeneral,
		graph.NodeTypeSlice:       slice,
		graph.NodeTypeReverse:     reverse,
		graph.NodeTypeRsqrt:       rsqrt,
		graph.NodeTypeExpm1:       expm1,
		graph.NodeTypeIdentity:    identity,
		graph.NodeTypeReduceMax:   extremum,
		graph.NodeTypeReduceMin:   extremum,
		graph.NodeTypeSign:        flat,
		graph.NodeTypeFloor:       flat,
		graph.NodeTypeCeil:        flat,
		graph.NodeTypeRound:       flat,
	} {
		graph.VJPRegistration[kind] = func(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
			return f(node, v[0])
		}
	}
}

// rsqrt: y = x^{−1/2}, x̄ = −½ y³ v. Written in y, so that it stays finite wherever y is.
func rsqrt(node, v *graph.Node) []*graph.Node {
	cube := graph.Mul(node, graph.Square(node))
	return []*graph.Node{graph.Mul(v, graph.MulScalar(cube, -0.5))}
}

// expm1: y = eˣ − 1, x̄ = eˣ v.
func expm1(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Mul(v, graph.Exp(node.Inputs()[0]))}
}

// identity: x̄ = v.
func identity(_, v *graph.Node) []*graph.Node { return []*graph.Node{v} }

// flat is the rule of piecewise constant functions (sign, floor, ...): zero almost everywhere. Second derivatives of
// max and abs need it, because their first-order rules use these functions.
func flat(node, _ *graph.Node) []*graph.Node { return make([]*graph.Node, len(node.Inputs())) }

// extremum is the rule of ReduceMax and ReduceMin: v goes to every entry equal to the extremum. The library compares by
// the sign of a difference, which XLA may fuse with a product in x to a multiply-add, so that no entry is equal.
func extremum(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	dims := x.Shape().Clone().Dimensions
	axes := nodes.Ints(node, "axes")
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

// reverse: y = x with some axes reversed; its own adjoint.
func reverse(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{Reverse(v, nodes.Ints(node, "axes")...)}
}

// Reverse reverses the order of x's entries along the axes. On the pure-Go backend, which has no such operation, it
// concatenates single entries; it is used on small kernels.
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

// slice: y = x[start:limit:stride] along every axis. The adjoint puts v back among zeros, axis by axis, with
// Concatenate, whose own rule is Slice.
func slice(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	starts, strides := nodes.Ints(node, "starts"), nodes.Ints(node, "strides")
	for axis, size := range x.Shape().Dimensions {
		stride := 1
		if len(strides) > 0 {
			stride = strides[axis]
		}
		v = Embed(v, axis, starts[axis], stride, size)
	}
	return []*graph.Node{v}
}

// Embed returns the array of the given size along axis that holds v's entries at start, start+stride, ... and zeros
// elsewhere.
func Embed(v *graph.Node, axis, start, stride, size int) *graph.Node {
	if stride > 1 { // with stride−1 zeros after every entry
		dims := v.Shape().Clone().Dimensions
		dims[axis] *= stride
		v = graph.InsertAxes(v, axis+1)
		v = graph.Reshape(graph.Concatenate([]*graph.Node{v, zeros(v, axis+1, stride-1)}, axis+1), dims...)
	}
	return Padded(v, axis, start, size-start-v.Shape().Dimensions[axis])
}

// Padded adds zeros before and behind the entries along an axis, or removes entries if a number is negative.
func Padded(x *graph.Node, axis, before, behind int) *graph.Node {
	size := x.Shape().Dimensions[axis]
	from, to := max(-before, 0), min(size+behind, size)
	if from >= to {
		return zeros(x, axis, size+before+behind)
	}
	if from > 0 || to < size {
		x = graph.SliceAxis(x, axis, graph.AxisRange(from, to))
	}
	parts := []*graph.Node{x}
	if before > 0 {
		parts = []*graph.Node{zeros(x, axis, before), x}
	}
	if behind > 0 {
		parts = append(parts, zeros(x, axis, behind))
	}
	if len(parts) == 1 {
		return x
	}
	return graph.Concatenate(parts, axis)
}

// zeros has the shape of x, except for n entries along axis.
func zeros(x *graph.Node, axis, n int) *graph.Node {
	s := x.Shape().Clone()
	s.Dimensions[axis] = n
	return graph.Zeros(x.Graph(), s)
}
