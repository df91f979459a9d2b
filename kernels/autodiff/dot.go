package autodiff

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// dotGeneral is the rule of the general product y = Σ lhs·rhs over the contracted axes, for each entry of the batch
// axes. The axes of y are the batch axes, then the free axes of lhs, then those of rhs.
func dotGeneral(node, v *graph.Node) []*graph.Node {
	axes := func(name string) []int { return nodes.Ints(node, name) }
	return adjoints(node, v, axes("lhsContractingAxes"), axes("lhsBatchAxes"), axes("rhsContractingAxes"),
		axes("rhsBatchAxes"))
}

// dot is the rule of products of vectors and matrices: the last axis of lhs against the first of rhs.
func dot(node, v *graph.Node) []*graph.Node {
	return adjoints(node, v, []int{node.Inputs()[0].Rank() - 1}, nil, []int{0}, nil)
}

// operand is a factor of a product, with its axes by their role.
type operand struct {
	x                *graph.Node
	sum, batch, free []int
}

func newOperand(x *graph.Node, sum, batch []int) operand {
	free := slices.DeleteFunc(count(0, x.Rank()), func(axis int) bool {
		return slices.Contains(sum, axis) || slices.Contains(batch, axis)
	})
	return operand{x, sum, batch, free}
}

// adjoints returns lhs̄ = Σ v·rhs over rhs's free axes and rhs̄ = Σ v·lhs over lhs's free axes.
func adjoints(node, v *graph.Node, lhsSum, lhsBatch, rhsSum, rhsBatch []int) []*graph.Node {
	in := node.Inputs()
	lhs, rhs := newOperand(in[0], lhsSum, lhsBatch), newOperand(in[1], rhsSum, rhsBatch)
	left := count(len(lhsBatch), len(lhs.free))
	right := count(len(lhsBatch)+len(left), len(rhs.free))
	return []*graph.Node{lhs.adjoint(v, right, rhs), rhs.adjoint(v, left, lhs)}
}

// adjoint contracts the given axes of v with the other factor's free axes, and transposes the result to the layout of
// o. Before, its axes are the batch, o's free axes, and the other factor's contracted axes in ascending order.
func (o operand) adjoint(v *graph.Node, axes []int, other operand) *graph.Node {
	batch := len(o.batch)
	y := graph.DotGeneral(v, axes, count(0, batch), other.x, other.free, other.batch)
	perm := make([]int, y.Rank())
	for i, axis := range o.batch {
		perm[axis] = i
	}
	for i, axis := range o.free {
		perm[axis] = batch + i
	}
	ascending := slices.Sorted(slices.Values(other.sum))
	for i, axis := range o.sum {
		perm[axis] = batch + len(o.free) + slices.Index(ascending, other.sum[i])
	}
	if slices.IsSorted(perm) {
		return y
	}
	return graph.TransposeAllAxes(y, perm...)
}

// count returns the n numbers from, from+1, ….
func count(from, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i
	}
	return out
}
