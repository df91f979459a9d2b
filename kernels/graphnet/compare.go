package graphnet

import (
	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

func comparisons() map[string]rule {
	out := map[string]rule{
		"logical_not.default": logical(func(x, _ *Node) *Node { return graph.LogicalNot(x) }, false),
		"logical_and.default": logical(graph.LogicalAnd, true),
		"logical_or.default":  logical(graph.LogicalOr, true),
		"bitwise_not.default": logical(func(x, _ *Node) *Node { return graph.LogicalNot(x) }, false),
	}
	for name, f := range map[string]func(x, y *Node) *Node{
		"eq": graph.Equal, "ne": graph.NotEqual, "lt": graph.LessThan, "le": graph.LessOrEqual,
		"gt": graph.GreaterThan, "ge": graph.GreaterOrEqual,
	} {
		out[name+".Scalar"], out[name+".Tensor"] = binary(f), binary(f)
	}
	return out
}

// logical applies f to booleans.
func logical(f func(x, y *Node) *Node, two bool) rule {
	return func(c *call) value {
		x := c.tensor("self")
		if x.n.DType() != lib.Bool {
			refuse("self must be boolean, got %s", x.n.DType())
		}
		if !two {
			return x.with(f(x.n, nil))
		}
		return c.b.pair(x, c.tensor("other"), f)
	}
}
