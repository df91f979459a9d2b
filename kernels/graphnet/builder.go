package graphnet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// builder appends a program to a graph.
type builder struct {
	p     *program
	g     *graph.Graph
	s     *nn.Scope
	batch int
	wide  lib.DType // of everything but images

	z, noise, ratios *Node // inputs, in the model's types; see [Net.Raw]
	label            *Node // [B, Labels], after the label dropout
	values           []value
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

// sameType converts the operands of a product to one floating type: the narrow one if either is narrow.
func (b *builder) sameType(x, y *Node) (*Node, *Node) {
	if x.DType() == y.DType() {
		return x, y
	}
	t := x.DType()
	if y.DType() == lib.BFloat16 {
		t = y.DType()
	}
	return graph.ConvertDType(x, t), graph.ConvertDType(y, t)
}

// pair broadcasts two operands from the right, as PyTorch does, in the order of the larger. If one is in bfloat16, f is
// computed wide and rounded once.
func (b *builder) pair(x, y value, f func(x, y *Node) *Node) value {
	rank := max(x.rank(), y.rank())
	x, y = x.raise(rank), y.raise(rank)
	lead := larger(x, y)
	xn, yn := x.inOrderOf(lead), y.inOrderOf(lead)
	narrow := xn.DType() == lib.BFloat16 || yn.DType() == lib.BFloat16
	xn, yn = b.promote(nn.Wide(xn), nn.Wide(yn))
	out := f(xn, yn)
	if narrow && out.DType().IsFloat() {
		out = graph.ConvertDType(out, lib.BFloat16)
	}
	return value{n: out, order: lead.order}
}

// larger returns the operand in whose order the result of a pair is stored.
func larger(x, y value) value {
	if y.n.Shape().Size() > x.n.Shape().Size() {
		return y
	}
	return x
}

// promote converts two operands to one type: a floating one if either is floating, else an integer one.
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

// build appends every node and returns the output, [B, H, W, C]. It panics with an error that names the node.
func (b *builder) build(c Config) *Node {
	for i := range b.p.nodes {
		o := &b.p.nodes[i]
		v, err := b.apply(o)
		if err != nil {
			panic(graphError("%s: %v", o.where(), err))
		}
		b.values[i] = v
	}
	out := b.values[b.p.output]
	want := []int{b.batch, c.ImgChannels, c.ImgResolution.Height, c.ImgResolution.Width}
	if out.n == nil || !slices.Equal(out.dims(), want) || !out.n.DType().IsFloat() {
		panic(graphError("the output must be floating of shape [batch %d %d %d], as img_channels and img_resolution say",
			want[1], want[2], want[3]))
	}
	return out.image()
}

// apply appends one node. It returns an error if the rule or the graph library panics.
func (b *builder) apply(o *node) (v value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = asFault(r)
		}
	}()
	c := &call{b: b, o: o}
	v = rules[o.Op](c)
	if v.n == nil || o.DType == "" {
		return v, nil
	}
	if want := c.target(); !slices.Equal(v.dims(), want) {
		return v, fmt.Errorf("computes shape %v; the file says %v", v.dims(), want)
	}
	if k := kindOf(v.n.DType()); k != kinds[o.DType] {
		return v, fmt.Errorf("computes %s values; the file says %s", k, o.DType)
	}
	return v, nil
}

// asFault returns the first line of a panic, to which the graph library adds a stack.
func asFault(r any) error {
	line, _, _ := strings.Cut(fmt.Sprint(r), "\n")
	return errors.New(line[:min(len(line), 300)])
}

// board draws graphs without computing anything.
var board = sync.OnceValues(func() (*device.Device, error) { return device.Open(device.Config{Plugin: "go"}) })

// drawBatch is the batch size with which a graph is drawn. Sizes in files are rarely 7 by chance.
const drawBatch = 7

// draw builds a network once and returns the first error.
func draw(n kernels.RawNetwork) error {
	dev, err := board()
	if err != nil {
		return err
	}
	cost, err := dev.Cost(n.Spec().Key, func(g *graph.Graph) []*graph.Node { return []*graph.Node{drawn(n, g)} })
	var bad *nn.ConfigError
	switch {
	case errors.As(err, &bad):
		return bad
	case err != nil:
		return graphError("%v", asFault(err))
	case cost.FLOPs < 0 || float64(cost.FLOPs) > maxFLOPs*drawBatch:
		return graphError("one evaluation takes %.3g operations an image; at most %.3g",
			float64(cost.FLOPs)/drawBatch, maxFLOPs)
	}
	return nil
}

func drawn(n kernels.RawNetwork, g *graph.Graph) *Node {
	arg := func(name string, dims ...int) *Node {
		return graph.Parameter(g, name, shapes.Make(lib.Float32, dims...))
	}
	var values []*Node
	for i, p := range n.Params() {
		values = append(values, arg(fmt.Sprintf("p%d", i), p.DeviceShape()...))
	}
	spec := n.Spec()
	z := arg("z", drawBatch, spec.Height, spec.Width, spec.Channels)
	var ratios, label *Node
	if spec.Ratios > 0 {
		ratios = arg("ratios", drawBatch, spec.Ratios)
	}
	if spec.Labels > 0 {
		label = arg("label", drawBatch, spec.Labels)
	}
	return n.Raw(nn.NewScope(n.Params(), values), z, arg("noise", drawBatch), ratios, label)
}
