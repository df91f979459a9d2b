package graphnet

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

func normalisations() map[string]rule {
	return map[string]rule{
		"group_norm.default": groupNorm, "layer_norm.default": lastNorm, "rms_norm.default": lastNorm,
		"instance_norm.default": instanceNorm,
	}
}

// groupNorm normalises [B, C, …] whatever the axes behind the channels are.
func groupNorm(c *call) value {
	return groupsOf(c, c.int("num_groups"))
}

// instanceNorm is a group norm of one channel each. It has no running statistics.
func instanceNorm(c *call) value {
	if c.has("running_mean") && !c.bool("use_input_stats") {
		refuse("running statistics have no rule")
	}
	x := c.floating("input")
	if x.rank() < 2 {
		refuse("input must have at least two axes")
	}
	return groupsOf(c, x.dims()[1])
}

func groupsOf(c *call, groups int) value {
	x := c.floating("input")
	d := x.dims()
	if len(d) < 3 || groups < 1 || d[1]%groups != 0 {
		refuse("cannot normalise %v in %d groups", d, groups)
	}
	last := append(append([]int{0}, count(len(d))[2:]...), 1)
	n := x.in(last...) // channels last
	flat := graph.Reshape(n, d[0], -1, 1, d[1])
	y := nn.NormalizeGroups(flat, groups, c.float("eps", 1e-5), c.vector("weight", d[1]), c.vector("bias", d[1]))
	return stored(graph.Reshape(y, n.Shape().Dimensions...), last...)
}

// lastNorm normalises over the last axes: a layer norm, or an RMS norm.
func lastNorm(c *call) value {
	x := c.floating("input")
	shape := c.ints("normalized_shape")
	d := x.dims()
	if len(shape) == 0 || len(shape) > len(d) || !slices.Equal(shape, d[len(d)-len(shape):]) {
		refuse("normalized_shape must be the last sizes of %v, got %v", d, shape)
	}
	eps := 1e-5
	layer := c.o.op == "layer_norm.default"
	if !layer {
		eps = 1.1920928955078125e-07 // PyTorch's: that of float32
	}
	y := plain(nn.NormalizeLast(x.plain(), len(shape), c.float("eps", eps), layer))
	if w, ok := c.optional("weight"); ok {
		y = c.b.pair(y, w, graph.Mul)
	}
	if w, ok := c.optional("bias"); ok {
		y = c.b.pair(y, w, graph.Add)
	}
	return y
}
