package graphnet

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

func reductions() map[string]rule {
	return map[string]rule{
		"mean.dim": reduce(mean), "mean.default": reduce(mean), "sum.dim_IntList": reduce(graph.ReduceSum),
		"sum.default":  reduce(graph.ReduceSum),
		"amax.default": reduce(graph.ReduceMax), "amin.default": reduce(graph.ReduceMin),
		"linalg_vector_norm.default": reduce(norm), "var.correction": reduce(nil),
		"var_mean.correction": meanAndVariance,
	}
}

func mean(x *Node, axes ...int) *Node { return graph.ReduceMean(x, axes...) }

func norm(x *Node, axes ...int) *Node { return graph.Sqrt(graph.ReduceSum(graph.Square(x), axes...)) }

// reduce applies f over axes, wide; nil stands for the variance.
func reduce(f func(x *Node, axes ...int) *Node) rule {
	return func(c *call) value {
		g := f
		if g == nil {
			g = c.variance()
		}
		if c.o.op == "linalg_vector_norm.default" && c.float("ord", 2) != 2 {
			refuse("ord must be 2, got %v", c.float("ord", 2))
		}
		return c.reduced(g)
	}
}

func (c *call) reduced(f func(x *Node, axes ...int) *Node) value {
	x := c.floating("self")
	axes := c.axes("dim", x.rank())
	if len(axes) == 0 { // a scalar
		return x
	}
	var places []int
	for _, a := range axes {
		places = append(places, x.at[a])
	}
	slices.Sort(places)
	n := graph.ConvertDType(f(nn.Wide(x.n), places...), x.n.DType())
	if c.bool("keepdim") {
		d := slices.Clone(x.n.Shape().Dimensions)
		for _, p := range places {
			d[p] = 1
		}
		return x.with(graph.Reshape(n, d...))
	}
	return x.without(n, axes)
}

// variance returns Σ (x − μ)²/(n − correction).
func (c *call) variance() func(x *Node, axes ...int) *Node {
	less := c.float("correction", 1)
	return func(x *Node, axes ...int) *Node {
		n := 1
		for _, a := range axes {
			n *= x.Shape().Dimensions[a]
		}
		if float64(n)-less <= 0 {
			refuse("the variance of %d values with correction %v", n, less)
		}
		centred := graph.Sub(x, graph.ReduceAndKeep(x, graph.ReduceMean, axes...))
		return graph.MulScalar(graph.ReduceSum(graph.Square(centred), axes...), 1/(float64(n)-less))
	}
}

func meanAndVariance(c *call) value {
	return value{parts: []value{c.reduced(c.variance()), c.reduced(mean)}}
}
