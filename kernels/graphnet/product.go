package graphnet

import (
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// linear maps [..., I] to [..., O]. The axes before stay as they are stored.
func linear(c *call) value {
	x, w := c.floating("input"), c.floating("weight")
	if w.rank() != 2 {
		refuse("cannot multiply %v with a weight %v", x.dims(), w.dims())
	}
	y := c.multiply(x, permuted(w, []int{1, 0}))
	if bias := c.vector("bias", w.dims()[0]); bias != nil {
		y.n = nn.Shift(y.n, graph.Reshape(bias, append(slices.Repeat([]int{1}, y.rank()-1), -1)...))
	}
	return y
}

func addmm(c *call) value {
	y := c.multiply(c.floating("mat1"), c.floating("mat2"))
	y.n = scale(y.n, c.float("alpha", 1))
	beta := c.float("beta", 1)
	if beta == 0 {
		return y
	}
	x := c.floating("self")
	x.n = scale(x.n, beta)
	return c.b.pair(y, x, graph.Add)
}

func matmul(c *call) value {
	other := "mat2"
	if c.o.Op == "matmul.default" {
		other = "other"
	}
	return c.multiply(c.floating("self"), c.floating(other))
}

// multiply is the product of matrices [..., M, K] and [..., K, N], whose leading axes are broadcast.
func (c *call) multiply(x, y value) value {
	dx, dy := x.dims(), y.dims()
	if len(dx) < 1 || len(dy) < 2 || dx[len(dx)-1] != dy[len(dy)-2] {
		refuse("cannot multiply %v with %v", dx, dy)
	}
	x.n, y.n = c.b.sameType(x.n, y.n)
	if len(dy) == 2 { // one matrix for all: the axes before stay as they are stored
		last := len(dx) - 1
		n := graph.DotGeneral(x.n, []int{x.order[last]}, nil, y.n, []int{y.order[0]}, nil)
		return value{n: n, order: append(ranks(slices.Clone(x.order[:last])), last)}
	}
	r := max(len(dx), len(dy))
	x, y = x.raise(r), y.raise(r)
	if !slices.Equal(x.dims()[:r-2], y.dims()[:r-2]) {
		x, y = spread(x, y), spread(y, x)
	}
	pick := func(v value) []int { return slices.Clone(v.order[:r-2]) }
	n := graph.DotGeneral(x.n, []int{x.order[r-1]}, pick(x), y.n, []int{y.order[r-2]}, pick(y))
	return torchOrder(n)
}

// spread returns x with its axes of size one, except the last two, in the sizes that they have in y.
func spread(x, y value) value {
	to, other := x.dims(), y.dims()
	for i := range to[:len(to)-2] {
		switch {
		case to[i] == 1:
			to[i] = other[i]
		case other[i] != 1 && other[i] != to[i]:
			refuse("cannot multiply %v with %v", x.dims(), other)
		}
	}
	if product(to) > maxElements {
		refuse("a product of %v with %v is too large", x.dims(), other)
	}
	return broadcast(x, to)
}

// einsum takes one operand, whose axes it permutes, or two.
func einsum(c *call) value {
	eq := strings.ReplaceAll(c.str("equation"), " ", "")
	xs := c.tensors("tensors")
	in, out, ok := strings.Cut(eq, "->")
	if !ok || len(eq) > 64 || strings.Contains(eq, ".") {
		refuse("equation must say its result, without dots, got %q", shorten(eq))
	}
	switch len(xs) {
	case 1:
		perm := make([]int, len(out))
		for i, r := range out {
			perm[i] = strings.IndexRune(in, r)
		}
		sorted := slices.Sorted(slices.Values(perm))
		if len(in) != xs[0].rank() || !slices.Equal(sorted, count(len(in))) {
			refuse("of one operand, equation must permute its axes, got %q", shorten(eq))
		}
		return permuted(xs[0], perm)
	case 2:
		x, y := c.b.sameType(c.b.float(xs[0].inTorchOrder()), c.b.float(xs[1].inTorchOrder()))
		return torchOrder(graph.Einsum(eq, x, y))
	}
	refuse("of %d operands there is no rule; take it apart", len(xs))
	return value{}
}

func mean(x *Node, axes ...int) *Node { return graph.ReduceMean(x, axes...) }

// reduce applies f over axes, wide.
func reduce(f func(x *Node, axes ...int) *Node) rule {
	return func(c *call) value { return c.reduced(f) }
}

func (c *call) reduced(f func(x *Node, axes ...int) *Node) value {
	x := c.floating("self")
	axes := c.axes("dim", x.rank())
	if len(axes) == 0 { // a scalar
		return x
	}
	var places []int
	for _, a := range axes {
		places = append(places, x.order[a])
	}
	slices.Sort(places)
	n := graph.ConvertDType(f(nn.Wide(x.n), places...), x.n.DType())
	if c.bool("keepdim") {
		d := slices.Clone(x.n.Shape().Dimensions)
		for _, p := range places {
			d[p] = 1
		}
		return x.withNode(graph.Reshape(n, d...))
	}
	return x.withoutAxes(n, axes)
}

// variance is Σ (x − μ)²/(n − correction).
func variance(c *call) value {
	less := c.float("correction", 1)
	return c.reduced(func(x *Node, axes ...int) *Node {
		n := 1
		for _, a := range axes {
			n *= x.Shape().Dimensions[a]
		}
		if float64(n)-less <= 0 {
			refuse("the variance of %d values with correction %v", n, less)
		}
		centred := graph.Sub(x, graph.ReduceAndKeep(x, graph.ReduceMean, axes...))
		return graph.MulScalar(graph.ReduceSum(graph.Square(centred), axes...), 1/(float64(n)-less))
	})
}

func varianceAndMean(c *call) value { return value{parts: []value{variance(c), c.reduced(mean)}} }
