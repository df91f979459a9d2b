package graphnet

import (
	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// inputs of a network, in the model's types; see [Net.Raw].
type inputs struct {
	z, noise, ratios, label *Node
}

// builder appends a program to a graph.
type builder struct {
	p     *program
	g     *graph.Graph
	s     *nn.Scope
	in    inputs
	batch int
	wide  lib.DType // of everything but images
	label *Node     // [B, Labels], after the label dropout

	values []value
}

func newBuilder(p *program, s *nn.Scope, in inputs) *builder {
	return &builder{
		p: p, g: in.z.Graph(), s: s, in: in,
		batch: in.z.Shape().Dimensions[0], wide: in.noise.DType(), values: make([]value, len(p.nodes)),
	}
}

// float converts to the wide floating type, unless v is floating already.
func (b *builder) float(n *Node) *Node {
	if n.DType().IsFloat() {
		return n
	}
	return graph.ConvertDType(n, b.wide)
}

// dtype returns the type in which a kind is computed: floats in the wide one.
func (b *builder) dtype(k kind) lib.DType {
	switch k {
	case integer:
		return lib.Int64
	case boolean:
		return lib.Bool
	}
	return b.wide
}

// alike brings the operands of a product to one floating type, the narrow one if either is.
func (b *builder) alike(x, y *Node) (*Node, *Node) {
	if x.DType() == y.DType() {
		return x, y
	}
	t := x.DType()
	if y.DType() == lib.BFloat16 {
		t = y.DType()
	}
	return graph.ConvertDType(x, t), graph.ConvertDType(y, t)
}

// pair broadcasts two operands from the right, as PyTorch does, in the order of the larger.
// With an image in bfloat16 among them, f is computed wide and rounded once.
func (b *builder) pair(x, y value, f func(x, y *Node) *Node) value {
	rank := max(x.rank(), y.rank())
	x, y = x.raise(rank), y.raise(rank)
	lead := larger(x, y)
	xn, yn := x.like(lead), y.like(lead)
	narrow := xn.DType() == lib.BFloat16 || yn.DType() == lib.BFloat16
	xn, yn = b.promote(nn.Wide(xn), nn.Wide(yn))
	out := f(xn, yn)
	if narrow && out.DType().IsFloat() {
		out = graph.ConvertDType(out, lib.BFloat16)
	}
	return value{n: out, at: lead.at}
}

// larger returns the operand in whose order the result of a pair is stored.
func larger(x, y value) value {
	if y.n.Shape().Size() > x.n.Shape().Size() {
		return y
	}
	return x
}

// promote brings two operands to one type: a floating one if either is, else an integer one.
func (b *builder) promote(x, y *Node) (*Node, *Node) {
	t := x.DType()
	switch {
	case x.DType() == y.DType():
		return x, y
	case y.DType().IsFloat() || x.DType() == lib.Bool:
		t = y.DType()
	}
	return graph.ConvertDType(x, t), graph.ConvertDType(y, t)
}
