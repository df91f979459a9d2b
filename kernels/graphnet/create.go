package graphnet

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

func creations() map[string]rule {
	return map[string]rule{
		"arange.start_step": arange, "arange.default": arange, "arange.start": arange, "full.default": full,
		"full_like.default": full,
		"zeros.default":     constant(0), "ones.default": constant(1), "zeros_like.default": constant(0),
		"ones_like.default": constant(1),
		"new_zeros.default": constant(0), "new_ones.default": constant(1), "scalar_tensor.default": scalar,
		"linspace.default": linspace,
	}
}

// filled returns a constant of the shape and type that the file declares.
func (c *call) filled(v float64) value {
	if c.o.dtype == "" {
		refuse("its shape and dtype must be given")
	}
	n := graph.Scalar(c.b.g, c.b.dtype(integer), v)
	switch k := kinds[c.o.dtype]; k {
	case float:
		n = graph.Scalar(c.b.g, c.b.wide, v)
	case boolean:
		n = graph.Const(c.b.g, v != 0)
	}
	if to := c.target(); len(to) > 0 {
		n = graph.BroadcastToDims(n, to...)
	}
	return plain(n)
}

func constant(v float64) rule { return func(c *call) value { return c.filled(v) } }

func full(c *call) value {
	if on, ok := c.o.args["fill_value"].(bool); ok {
		if on {
			return c.filled(1)
		}
		return c.filled(0)
	}
	return c.filled(c.float("fill_value", 0))
}

func scalar(c *call) value { return c.filled(c.float("s", 0)) }

// steps returns 0, 1, … as many as the file declares.
func (c *call) steps() *Node {
	if len(c.o.shape) != 1 || kinds[c.o.dtype] == boolean {
		refuse("its shape must have one axis, got %v", c.o.shape)
	}
	return graph.Iota(c.b.g, shapes.Make(c.b.dtype(kinds[c.o.dtype]), c.target()...), 0)
}

func arange(c *call) value {
	i, start, step := c.steps(), c.float("start", 0), c.float("step", 1)
	i = scale(i, step)
	if start != 0 {
		i = graph.AddScalar(i, start)
	}
	return plain(i)
}

func linspace(c *call) value {
	i, start, end := c.steps(), c.float("start", 0), c.float("end", 0)
	n := max(c.target()[0]-1, 1)
	return plain(graph.AddScalar(graph.MulScalar(i, (end-start)/float64(n)), start))
}
