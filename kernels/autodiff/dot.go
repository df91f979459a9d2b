package autodiff

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// A product describes y = Σ lhs·rhs over the contracted axes, kept apart over the batch axes. The axes of y are the
// batch axes, then the free axes of lhs, then the free axes of rhs.
type product struct {
	lhs, rhs           *graph.Node
	lhsSum, lhsBatch   []int
	rhsSum, rhsBatch   []int
	lhsFree, rhsFree   []int
	batch, left, right int // counts of batch axes and free axes
}

func newProduct(lhs, rhs *graph.Node, lhsSum, lhsBatch, rhsSum, rhsBatch []int) product {
	p := product{
		lhs: lhs, rhs: rhs,
		lhsSum: lhsSum, lhsBatch: lhsBatch, rhsSum: rhsSum, rhsBatch: rhsBatch,
		lhsFree: others(lhs.Rank(), lhsSum, lhsBatch),
		rhsFree: others(rhs.Rank(), rhsSum, rhsBatch),
	}
	p.batch, p.left, p.right = len(lhsBatch), len(p.lhsFree), len(p.rhsFree)
	return p
}

// dotGeneral is the rule of the general product.
func dotGeneral(node, v *graph.Node) []*graph.Node {
	in, a := node.Inputs(), nodes.Of(node)
	return newProduct(in[0], in[1],
		a.Ints("lhsContractingAxes"), a.Ints("lhsBatchAxes"),
		a.Ints("rhsContractingAxes"), a.Ints("rhsBatchAxes")).adjoints(v)
}

// dot is the rule of products of vectors and matrices: the last axis of lhs against the first of rhs.
func dot(node, v *graph.Node) []*graph.Node {
	in := node.Inputs()
	return newProduct(in[0], in[1], []int{in[0].Rank() - 1}, nil, []int{0}, nil).adjoints(v)
}

// adjoints returns lhs̄ = Σ v·rhs over rhs's free axes and rhs̄ = Σ v·lhs over lhs's free axes, each transposed to the
// layout of its operand.
func (p product) adjoints(v *graph.Node) []*graph.Node {
	batch := count(0, p.batch)
	left := count(p.batch, p.left)
	right := count(p.batch+p.left, p.right)
	return []*graph.Node{
		other(v, right, batch, left, p.rhs, p.rhsFree, p.rhsBatch, p.rhsSum, p.lhsBatch, p.lhsFree, p.lhsSum),
		other(v, left, batch, right, p.lhs, p.lhsFree, p.lhsBatch, p.lhsSum, p.rhsBatch, p.rhsFree, p.rhsSum),
	}
}

// other multiplies v with the operand x and returns the adjoint of the other operand. Axes of v: sum against xSum,
// batch against xBatch, keep. What is left of x are its contracted axes xKeep; they pair off with toSum, v's keep with
// toFree and the batch axes with toBatch in the result.
func other(v *graph.Node, sum, batch, keep []int, x *graph.Node, xSum, xBatch, xKeep, toBatch, toFree,
	toSum []int,
) *graph.Node {
	y := graph.DotGeneral(v, sum, batch, x, xSum, xBatch)
	// Axes of y: batch, keep, then x's remaining axes in ascending order.
	perm := make([]int, y.Rank())
	for i, axis := range toBatch {
		perm[axis] = i
	}
	for i, axis := range toFree {
		perm[axis] = len(batch) + i
	}
	for i, axis := range toSum {
		rank := 0
		for _, k := range xKeep {
			if k < xKeep[i] {
				rank++
			}
		}
		perm[axis] = len(batch) + len(keep) + rank
	}
	for i, from := range perm {
		if i != from {
			return graph.TransposeAllAxes(y, perm...)
		}
	}
	return y
}

// others lists the axes below rank that are in neither set, ascending.
func others(rank int, sets ...[]int) []int {
	used := make([]bool, rank)
	for _, set := range sets {
		for _, axis := range set {
			used[axis] = true
		}
	}
	var free []int
	for axis, u := range used {
		if !u {
			free = append(free, axis)
		}
	}
	return free
}

// count returns from, from+1, ..., n numbers in all.
func count(from, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i
	}
	return out
}
