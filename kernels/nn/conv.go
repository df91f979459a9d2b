package nn

import "github.com/gomlx/gomlx/pkg/core/graph"

// Conv2D is a convolution with stride one and zero padding Kernel/2, so that the
// resolution stays (Kernel odd):
//
//	y[b, p, o] = Σ_{k, i} x[b, p+k−⌊Kernel/2⌋, i] · weight[o, i, k] + bias[o]
//
// As in PyTorch this is a cross-correlation: the kernel is not reversed.
type Conv2D struct {
	Name            string
	In, Out, Kernel int
	Init            Init
}

// Params lists weight [Out, In, Kernel, Kernel] and bias [Out].
func (c Conv2D) Params() []Param {
	fanIn, fanOut := c.In*c.Kernel*c.Kernel, c.Out*c.Kernel*c.Kernel
	return []Param{
		{Name: c.Name + ".weight", Shape: []int{c.Out, c.In, c.Kernel, c.Kernel}, Init: c.Init.weight(fanIn, fanOut)},
		{Name: c.Name + ".bias", Shape: []int{c.Out}, Init: c.Init.bias(fanIn, fanOut)},
	}
}

// Apply maps x [B, H, W, In] to [B, H, W, Out].
func (c Conv2D) Apply(s *Scope, x *Node) *Node {
	return Shift(Convolve(x, s.Like(x, c.Name+".weight"), c.Kernel/2), channels(s.Param(c.Name+".bias")))
}

// Convolve convolves x [B, H, W, In] with w [K, K, In, Out] at stride one, with
// pad zeros on every side. A 1×1 kernel without padding is a matrix product,
// which is faster.
func Convolve(x, w *Node, pad int) *Node {
	return Window{Pad: [2][2]int{{pad, pad}, {pad, pad}}}.Convolve(x, w)
}

// Window says how a convolution goes over rows and columns. Of strides, dilations and
// spreads zero means one.
type Window struct {
	Stride [2]int
	Pad    [2][2]int // zeros before and behind
	Dilate [2]int    // distance of the kernel's taps
	Spread [2]int    // distance of the image's pixels, zeros between: a transposed convolution
}

// Convolve convolves x [B, H, W, In] with w [K, L, In, Out].
func (n Window) Convolve(x, w *Node) *Node {
	stride, dilate, spread := unit(n.Stride), unit(n.Dilate), unit(n.Spread)
	one := [2]int{1, 1}
	if d := w.Shape().Dimensions; d[0] == 1 && d[1] == 1 && n.Pad == [2][2]int{} && stride == one && spread == one {
		return graph.DotGeneral(x, []int{3}, nil, graph.Reshape(w, d[2], d[3]), []int{0}, nil)
	}
	axes := graph.ConvolveAxesConfig{
		InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
		KernelSpatial: []int{0, 1}, KernelInputChannels: 2, KernelOutputChannels: 3,
		OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
	}
	return graph.ConvGeneral(x, w, axes, stride[:], n.Pad[:], spread[:], dilate[:], 1, 1)
}

func unit(v [2]int) [2]int { return [2]int{max(v[0], 1), max(v[1], 1)} }

// channels shapes a vector [C] for arithmetic with images.
func channels(v *Node) *Node { return graph.Reshape(v, 1, 1, 1, -1) }
