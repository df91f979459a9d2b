package unet

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// direction says what a layer does to the resolution.
type direction int

const (
	level direction = iota // keeps it
	down                   // halves it
	up                     // doubles it
)

// conv is EDM's convolution: resampling, then a convolution of kernel size
// Kernel; Kernel 0 means resampling alone, without parameters.
type conv struct {
	nn.Conv2D
	dir    direction
	filter nn.Resampler
}

func (c conv) entries() []nn.Entry {
	var out []nn.Entry
	if c.Kernel > 0 {
		out = nn.Entries(c.Params())
	}
	if c.dir != level {
		f := c.filter.Filter()
		n := 2 * (c.filter.Pad() + 1)
		out = append(out, nn.Entry{Param: nn.Param{Name: c.Name + ".resample_filter", Shape: []int{1, 1, n, n}}, Constant: f})
	}
	return out
}

func (c conv) apply(s *nn.Scope, x *graph.Node) *graph.Node {
	switch c.dir {
	case down:
		x = c.filter.Down(x)
	case up:
		x = c.filter.Up(x)
	}
	if c.Kernel == 0 {
		return x
	}
	return c.Apply(s, x)
}

// applyFused convolves first and then filters down, with the zero padding of
// both put around the image once: EDM's fused_resample, which NCSN++ uses on its
// input pyramid. Near the border it differs from apply.
func (c conv) applyFused(s *nn.Scope, x *graph.Node) *graph.Node {
	x = nn.Convolve(x, s.Like(x, c.Name+".weight"), c.Kernel/2+c.filter.Pad())
	x = c.filter.DownPadded(x)
	return nn.Shift(x, graph.Reshape(s.Param(c.Name+".bias"), 1, 1, 1, c.Out))
}
