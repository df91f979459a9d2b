package graphnet

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// Node is a value in a computation graph.
type Node = nn.Node

// value is a tensor in PyTorch's order of axes, however it is stored: axis i of PyTorch's is axis at[i] of the node.
// Permutations change at alone, and what follows them mostly takes the node as it is: images are [B, H, W, C], kernels
// as package nn stores them.
type value struct {
	n     *Node
	at    []int
	parts []value // of an operation with several results
}

// torchOrder returns a node in PyTorch's order.
func torchOrder(n *Node) value { return value{n: n, at: count(n.Rank())} }

// transposed returns a node whose axis i is PyTorch's axes[i].
func transposed(n *Node, axes ...int) value { return value{n: n, at: invert(axes)} }

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
	out := make([]int, len(v.at))
	for i, a := range v.at {
		out[i] = v.n.Shape().Dimensions[a]
	}
	return out
}

// permuted returns the node with PyTorch's axes permuted the given order.
func (v value) permuted(axes ...int) *Node {
	perm := make([]int, len(axes))
	for i, a := range axes {
		perm[i] = v.at[a]
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

// inOrderOf returns the node with its axes stored as w's, which has as many.
func (v value) inOrderOf(w value) *Node { return v.permuted(invert(w.at)...) }

// withNode returns another node in the same order.
func (v value) withNode(n *Node) value { return value{n: n, at: v.at} }

// withoutAxes returns v withoutAxes some of PyTorch's axes; n is the node that has lost them.
func (v value) withoutAxes(n *Node, gone []int) value {
	var left []int // places in the old node of the axes that stay
	for i, a := range v.at {
		if !slices.Contains(gone, i) {
			left = append(left, a)
		}
	}
	return value{n: n, at: ranks(left)}
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
	for _, a := range v.at {
		at = append(at, a+more)
	}
	return value{n: graph.Reshape(v.n, d...), at: at}
}

// reshape returns v in other sizes. Where each run of axes that is split or merged lies together and in order, nothing
// is moved.
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
			if v.at[i] != v.at[i-1]+1 {
				return torchOrder(graph.Reshape(v.inTorchOrder(), to...))
			}
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return v.at[a.from] - v.at[b.from] })
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

// match splits two shapes of one size into the shortest runs of one size, none empty on either side. It fails where an
// axis of size one has no place of its own.
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
