package graphnet

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

func resamplings() map[string]rule {
	return map[string]rule{
		"upsample_nearest2d.vec": nearest, "upsample_nearest2d.default": nearest, "avg_pool2d.default": average,
		"adaptive_avg_pool2d.default": average, "_adaptive_avg_pool2d.default": average,
	}
}

func (c *call) imageOf(name string) (*Node, []int) {
	x := c.floating(name)
	if x.rank() != 4 {
		refuse("%s must be an image [B, C, H, W], got %v", name, x.dims())
	}
	n := x.nhwc()
	return n, n.Shape().Dimensions
}

// nearest repeats pixels to the size that the file declares, a multiple of the image's.
func nearest(c *call) value {
	name := "input"
	if c.o.op == "upsample_nearest2d.default" {
		name = "self"
	}
	n, d := c.imageOf(name)
	to := c.target()
	if len(to) != 4 || to[2]%d[1] != 0 || to[3]%d[2] != 0 {
		refuse("%d×%d pixels become %v; the nearest is taken of whole multiples", d[1], d[2], to)
	}
	f := [2]int{to[2] / d[1], to[3] / d[2]}
	n = graph.Reshape(n, d[0], d[1], 1, d[2], 1, d[3])
	n = graph.BroadcastToDims(n, d[0], d[1], f[0], d[2], f[1], d[3])
	return image(graph.Reshape(n, d[0], d[1]*f[0], d[2]*f[1], d[3]))
}

// average takes the mean of blocks of pixels that do not overlap.
func average(c *call) value {
	n, d := c.imageOf("self")
	to := c.target()
	if len(to) != 4 || to[2] < 1 || to[3] < 1 || d[1]%to[2] != 0 || d[2]%to[3] != 0 {
		refuse("%d×%d pixels become %v; the mean is taken of whole blocks", d[1], d[2], to)
	}
	k := [2]int{d[1] / to[2], d[2] / to[3]}
	if c.has("kernel_size") &&
		(c.two("kernel_size", 1) != k || c.two("stride", k[0]) != k || c.two("padding", 0) != [2]int{}) {
		refuse("windows that overlap, or padding, have no rule")
	}
	wide := graph.Reshape(nn.Wide(n), d[0], to[2], k[0], to[3], k[1], d[3])
	return image(graph.ConvertDType(graph.ReduceMean(wide, 2, 4), n.DType()))
}
