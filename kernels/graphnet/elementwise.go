package graphnet

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

func same(c *call) value { return c.tensor("self") }

// exact applies f in the type of its operand.
func exact(f func(x *Node) *Node) rule {
	return func(c *call) value { x := c.tensor("self"); return x.withNode(f(x.n)) }
}

// unary applies f wide and rounds once.
func unary(f func(x *Node) *Node) rule {
	return func(c *call) value {
		x := c.tensor("self")
		n := c.b.float(x.n)
		return x.withNode(graph.ConvertDType(f(nn.Wide(n)), n.DType()))
	}
}

func binary(f func(x, y *Node) *Node) rule {
	return func(c *call) value {
		x, y := c.operands()
		return c.b.pair(x, y, f)
	}
}

// scaled is a rule of two operands the second of which is multiplied with alpha.
func scaled(f func(x, y *Node) *Node) rule {
	return func(c *call) value {
		x, y := c.operands()
		alpha := c.float("alpha", 1)
		return c.b.pair(x, y, func(x, y *Node) *Node { return f(x, scale(y, alpha)) })
	}
}

// divide is a true division: of integers, too.
func divide(c *call) value {
	x, y := c.operands()
	x.n, y.n = c.b.float(x.n), c.b.float(y.n)
	return c.b.pair(x, y, graph.Div)
}

func relu(x *Node) *Node {
	return graph.Where(graph.GreaterThan(x, graph.ZerosLike(x)), x, graph.ZerosLike(x))
}

// softplus is ln(1 + eˣ), without overflow.
func softplus(x *Node) *Node {
	return graph.Add(relu(x), graph.Log1P(graph.Exp(graph.Neg(graph.Abs(x)))))
}

func mish(x *Node) *Node { return graph.Mul(x, graph.Tanh(softplus(x))) }

func leaky(c *call) value {
	x, slope := c.floating("self"), c.float("negative_slope", 0.01)
	return x.withNode(graph.Where(graph.GreaterThan(x.n, graph.ZerosLike(x.n)), x.n, graph.MulScalar(x.n, slope)))
}

func elu(c *call) value {
	if c.float("alpha", 1) != 1 || c.float("scale", 1) != 1 || c.float("input_scale", 1) != 1 {
		refuse("alpha, scale and input_scale must be 1")
	}
	x := c.floating("self")
	w := nn.Wide(x.n)
	positive := graph.GreaterThan(w, graph.ZerosLike(w))
	// The branch that is not taken must be finite, or its derivative is not a number.
	low := graph.Expm1(graph.Where(positive, graph.ZerosLike(w), w))
	return x.withNode(graph.ConvertDType(graph.Where(positive, w, low), x.n.DType()))
}

func gelu(c *call) value {
	x := c.floating("self")
	w := nn.Wide(x.n)
	var gate *Node
	switch how := c.str("approximate"); how {
	case "tanh":
		cube := graph.Mul(w, graph.Square(w))
		gate = graph.Tanh(graph.MulScalar(graph.Add(w, graph.MulScalar(cube, 0.044715)), math.Sqrt(2/math.Pi)))
	case "", "none":
		gate = graph.Erf(graph.MulScalar(w, math.Sqrt(0.5)))
	default:
		refuse("approximate must be none or tanh, got %q", shorten(how))
	}
	y := graph.Mul(graph.MulScalar(w, 0.5), graph.AddScalar(gate, 1))
	return x.withNode(graph.ConvertDType(y, x.n.DType()))
}

func clamp(c *call) value {
	x := c.tensor("self")
	bound := func(name string, outside func(x, y *Node) *Node) {
		if c.has(name) {
			v := graph.Scalar(c.b.g, x.n.DType(), c.float(name, 0))
			v = graph.BroadcastToDims(v, x.n.Shape().Dimensions...)
			x.n = graph.Where(outside(x.n, v), v, x.n)
		}
	}
	bound("min", graph.LessThan)
	bound("min_val", graph.LessThan) // hardtanh's
	bound("max", graph.GreaterThan)
	bound("max_val", graph.GreaterThan)
	return x
}

// pow writes whole and half exponents as products and roots, which stay finite at zero.
func pow(c *call) value {
	x, e := c.tensor("self"), c.float("exponent", 1)
	size := math.Abs(e)
	n := int(min(size, 64))
	if !x.n.DType().IsFloat() && (e < 0 || e != math.Trunc(e)) {
		x.n = c.b.float(x.n)
	}
	var y *Node
	switch {
	case e == 0:
		return x.withNode(graph.OnesLike(x.n))
	case size > 64 || 2*size != math.Trunc(2*size):
		w := nn.Wide(c.b.float(x.n))
		return x.withNode(graph.ConvertDType(graph.Exp(graph.MulScalar(graph.Log(w), e)), x.n.DType()))
	case n == 0:
		y = graph.Sqrt(x.n)
	case size == float64(n):
		y = whole(x.n, n)
	default:
		y = graph.Mul(whole(x.n, n), graph.Sqrt(x.n))
	}
	if e < 0 {
		y = graph.Reciprocal(y)
	}
	return x.withNode(y)
}

// whole returns xⁿ, n ≥ 1.
func whole(x *Node, n int) *Node {
	switch {
	case n == 1:
		return x
	case n%2 == 0:
		return whole(graph.Square(x), n/2)
	}
	return graph.Mul(x, whole(graph.Square(x), n/2))
}

// scalarPow is sˣ of a positive number s.
func scalarPow(c *call) value {
	s, x := c.float("self", 0), c.tensor("exponent")
	if s <= 0 {
		refuse("self must be positive, got %v", s)
	}
	n := c.b.float(x.n)
	return x.withNode(graph.Exp(graph.MulScalar(n, math.Log(s))))
}

// convert leaves floats in the precision of the model.
func convert(c *call) value { return c.converted(c.tensor("self")) }

// replaced returns src in the place of self.
func replaced(c *call) value { return c.converted(expanded(c.tensor("src"), c.target())) }

func (c *call) converted(x value) value {
	k := kinds[c.o.DType]
	if kindOf(x.n.DType()) == k {
		return x
	}
	return x.withNode(graph.ConvertDType(x.n, c.b.dtype(k)))
}

func where(c *call) value {
	cond := c.boolean("condition")
	x, y := c.tensor("self"), c.tensor("other")
	rank := max(cond.rank(), x.rank(), y.rank())
	x, y = x.raise(rank), y.raise(rank)
	m := cond.raise(rank).inOrderOf(larger(x, y))
	return c.b.pair(x, y, func(xn, yn *Node) *Node {
		dims := make([]int, rank)
		for i := range dims {
			dims[i] = max(xn.Shape().Dimensions[i], yn.Shape().Dimensions[i], m.Shape().Dimensions[i])
		}
		to := func(n *Node) *Node { return graph.BroadcastToDims(n, dims...) }
		return graph.Where(to(m), to(xn), to(yn))
	})
}

// dropout is active in training, at the rate that the module has.
func dropout(c *call) value {
	x, p := c.floating("input"), c.float("p", 0)
	if p < 0 || p >= 1 {
		refuse("p must lie in [0, 1), got %v", p)
	}
	return x.withNode(nn.Dropout(c.b.s, x.n, p))
}

func scale(x *Node, by float64) *Node {
	if by == 1 {
		return x
	}
	return graph.MulScalar(x, by)
}

// logical applies f to booleans.
func logical(f func(x, y *Node) *Node) rule {
	return func(c *call) value { return c.b.pair(c.boolean("self"), c.boolean("other"), f) }
}

func not(c *call) value {
	x := c.boolean("self")
	return x.withNode(graph.LogicalNot(x.n))
}
