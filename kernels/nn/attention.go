package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Attention lets every pixel look at every other:
//
//	[q k v] = 1×1 convolution of x,   y = proj( Σ_k softmax_k(q·k/√c) v_k )
//
// on Heads heads of c = Channels/Heads channels. In EDM's checkpoints the 3·Channels
// outputs of the first convolution are ordered [head][channel][q, k, v], q, k, v
// fastest.
type Attention struct {
	Name            string // of the block; the convolutions are Name.qkv and Name.proj
	Channels, Heads int
	InitQKV         Init
	InitProj        Init
}

func (a Attention) qkv() Conv2D {
	return Conv2D{Name: a.Name + ".qkv", In: a.Channels, Out: 3 * a.Channels, Kernel: 1, Init: a.InitQKV}
}

func (a Attention) proj() Conv2D {
	return Conv2D{Name: a.Name + ".proj", In: a.Channels, Out: a.Channels, Kernel: 1, Init: a.InitProj}
}

// Params lists the tensors of Name.qkv and Name.proj.
func (a Attention) Params() []Param { return append(a.qkv().Params(), a.proj().Params()...) }

// Apply maps x [B, H, W, Channels], already normalised, to the same shape. The
// residual sum is the caller's.
func (a Attention) Apply(s *Scope, x *Node) *Node {
	d := x.Shape().Dimensions
	size := a.Channels / a.Heads
	x = graph.Reshape(x, d[0], d[1]*d[2], a.Channels)

	// The weight is small and the image large, so q, k and v are taken apart
	// in the weight.
	w := graph.Reshape(s.Like(x, a.Name+".qkv.weight"), a.Channels, a.Channels, 3)
	b := graph.Reshape(s.Param(a.Name+".qkv.bias"), a.Channels, 3)
	part := func(i int) *Node {
		wi := graph.Reshape(graph.SliceAxis(w, 2, graph.AxisElem(i)), a.Channels, a.Channels)
		bi := graph.Reshape(graph.SliceAxis(b, 1, graph.AxisElem(i)), 1, 1, a.Channels)
		y := Shift(graph.DotGeneral(x, []int{2}, nil, wi, []int{0}, nil), bi)
		return graph.Reshape(y, d[0], d[1]*d[2], a.Heads, size)
	}
	y := Attend(part(0), part(1), part(2), 1/math.Sqrt(float64(size)), nil)
	return a.proj().Apply(s, graph.Reshape(y, d...))
}

// Attend returns Σ_k softmax_k(scale q·k + mask) v_k for q [B, N, heads, c], k and v
// [B, M, heads, c], shaped as q. The mask is one that can be broadcast to [B, heads, N, M],
// or nil. The softmax is computed wide.
func Attend(q, k, v *Node, scale float64, mask *Node) *Node {
	k = graph.MulScalar(k, scale)
	weights := Wide(graph.DotGeneral(q, []int{3}, []int{0, 2}, k, []int{3}, []int{0, 2})) // [B, head, query, key]
	if mask != nil {
		weights = graph.Add(weights, mask)
	}
	y := graph.DotGeneral(narrow(graph.Softmax(weights, -1), q), []int{3}, []int{0, 1}, v, []int{1}, []int{0, 2})
	return graph.TransposeAllAxes(y, 0, 2, 1, 3) // from [B, head, query, c]
}
