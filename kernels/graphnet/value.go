package graphnet

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// Node is a value in a computation graph.
type Node = nn.Node

// value is a tensor in PyTorch's order of axes, however it is stored: axis i of PyTorch's is axis order[i] of the
// node. Permutations change order alone, and what follows them mostly takes the node as it is: images are [B, H, W,
// C], kernels as package nn stores them.
type value struct {
	n     *Node
	order []int
	parts []value // of an operation with several results
}

// torchOrder returns a node in PyTorch's order.
func torchOrder(n *Node) value { return value{n: n, order: count(n.Rank())} }

// transposed returns a node whose axis i is PyTorch's axes[i].
func transposed(n *Node, axes ...int) value { return value{n: n, order: invert(axes)} }

// image returns an image [B, H, W, C], which is [B, C, H, W] in PyTorch; of other numbers of axes likewise.
func image(n *Node) value { return transposed(n, channelsLast(n.Rank())...) }

func channelsLast(rank int) []int { return append(append([]int{0}, count(rank)[2:]...), 1) }

func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func invert(p []int) []int {
	out := make([]int, len(p))
	for i, a := range p {
		out[a] = i
	}
	return out
}

func (v value) rank() int { return v.n.Rank() }

// dims returns the sizes in PyTorch's order.
func (v value) dims() []int {
	out := make([]int, len(v.order))
	for i, a := range v.order {
		out[i] = v.n.Shape().Dimensions[a]
	}
	return out
}

// permuted returns the node with PyTorch's axes in the given order.
func (v value) permuted(axes ...int) *Node {
	perm := make([]int, len(axes))
	for i, a := range axes {
		perm[i] = v.order[a]
	}
	if slices.IsSorted(perm) {
		return v.n
	}
	return graph.TransposeAllAxes(v.n, perm...)
}

// inTorchOrder returns the node in PyTorch's order.
func (v value) inTorchOrder() *Node { return v.permuted(count(v.rank())...) }

// image returns the node of an image with its channels last.
func (v value) image() *Node { return v.permuted(channelsLast(v.rank())...) }

// inOrderOf returns the node with its axes in the order of w, which has the same rank.
func (v value) inOrderOf(w value) *Node { return v.permuted(invert(w.order)...) }

// withNode returns another node in the same order.
func (v value) withNode(n *Node) value { return value{n: n, order: v.order} }

// withoutAxes returns v without some of PyTorch's axes; n is its node without them.
func (v value) withoutAxes(n *Node, dropped []int) value {
	var places []int // of the remaining axes in v.n
	for i, a := range v.order {
		if !slices.Contains(dropped, i) {
			places = append(places, a)
		}
	}
	return value{n: n, order: ranks(places)}
}

// ranks returns how many entries of v are smaller than each.
func ranks(v []int) []int {
	out := make([]int, len(v))
	for i, a := range v {
		for _, b := range v {
			if b < a {
				out[i]++
			}
		}
	}
	return out
}

// raise puts axes of size one before, up to a rank.
func (v value) raise(rank int) value {
	more := rank - v.rank()
	if more <= 0 {
		return v
	}
	d := append(slices.Repeat([]int{1}, more), v.n.Shape().Dimensions...)
	at := count(more)
	for _, a := range v.order {
		at = append(at, a+more)
	}
	return value{n: graph.Reshape(v.n, d...), order: at}
}

// reshape returns v in other sizes. If the axes that are split or merged are stored together and in order, no data
// moves.
func (v value) reshape(to []int) value {
	from := v.dims()
	if slices.Equal(from, to) {
		return v
	}
	groups, ok := match(from, to)
	if !ok {
		return torchOrder(graph.Reshape(v.inTorchOrder(), to...))
	}
	for _, g := range groups {
		for i := g.from + 1; i < g.fromEnd; i++ {
			if v.order[i] != v.order[i-1]+1 {
				return torchOrder(graph.Reshape(v.inTorchOrder(), to...))
			}
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return v.order[a.from] - v.order[b.from] })
	var sizes, axes []int
	for _, g := range groups {
		for i := g.to; i < g.toEnd; i++ {
			sizes, axes = append(sizes, to[i]), append(axes, i)
		}
	}
	return transposed(graph.Reshape(v.n, sizes...), axes...)
}

// group says that axes from … fromEnd−1 become axes to … toEnd−1.
type group struct{ from, fromEnd, to, toEnd int }

// match splits two shapes of the same size into the shortest groups of the same size, none of them empty. It fails if
// an axis of size one belongs to no group.
func match(from, to []int) (out []group, ok bool) {
	i, j := 0, 0
	for i < len(from) && j < len(to) {
		g := group{from: i, to: j}
		a, b := from[i], to[j]
		i, j = i+1, j+1
		for a != b {
			switch {
			case a < b && i < len(from):
				a *= from[i]
				i++
			case b < a && j < len(to):
				b *= to[j]
				j++
			default:
				return nil, false
			}
		}
		g.fromEnd, g.toEnd = i, j
		out = append(out, g)
	}
	if len(out) == 0 || product(from[i:]) != 1 || product(to[j:]) != 1 {
		return nil, false
	}
	last := &out[len(out)-1] // takes the sizes of one at the end
	last.fromEnd, last.toEnd = len(from), len(to)
	return out, true
}
