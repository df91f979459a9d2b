package autodiff

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// window describes a convolution along one spatial axis, with x dilated by ℓ (ℓ−1 zeros between entries), the kernel by
// r, stride s and padding (p, q):
//
//	y[i] = Σ_k x̃[i·s + k·r − p] w[k],   x̃[j·ℓ] = x[j], zero elsewhere
type window struct {
	stride, lhsDilation, rhsDilation int
	pad                              [2]int
}

// dilated returns the extent of n entries with d−1 zeros between them.
func dilated(n, d int) int { return (n-1)*d + 1 }

// windowOf returns the window with padding p in front that maps n entries to out with a kernel of m.
func windowOf(stride, lhsDilation, rhsDilation, p, n, m, out int) window {
	q := dilated(out, stride) - 1 + dilated(m, rhsDilation) - dilated(n, lhsDilation) - p
	return window{stride, lhsDilation, rhsDilation, [2]int{p, q}}
}

// convGeneral is the rule of ConvGeneral without groups, for any strides, dilations, paddings and order of axes. Both
// adjoints are ConvGeneral again, so the rule applies to its own output:
//
//	x̄ = conv(v, reversed w with exchanged channel axes)
//	w̄ = conv(x, v), summed over the batch
//
// If the kernel has far fewer outputs than inputs, w̄ is conv(v, x) reversed: XLA for CPU rearranges the image that it
// convolves, and v is the smaller one (bench/docs/model.md has the times). Grouped convolutions panic.
func convGeneral(node, v *graph.Node) []*graph.Node {
	x, w := node.Inputs()[0], node.Inputs()[1]
	if nodes.Attribute[int](node, "channelGroupCount") > 1 || nodes.Attribute[int](node, "batchGroupCount") > 1 {
		panic("autodiff: grouped convolutions have no derivative here; write them with slices and sums")
	}
	ax := nodes.Attribute[graph.ConvolveAxesConfig](node, "axes")
	spatial := x.Rank() - 2
	in, out := x.Shape().Dimensions[ax.InputChannels], node.Shape().Dimensions[ax.OutputChannels]
	exchange := 2*out < in
	var toInput, toKernel []window
	strides, pads := nodes.Ints(node, "strides"), nodes.Attribute[[][2]int](node, "paddings")
	lhs, rhs := nodes.Ints(node, "inputDilations"), nodes.Ints(node, "kernelDilations")
	for i := range spatial {
		stride, lhsDilation, rhsDilation, p := strides[i], lhs[i], rhs[i], pads[i][0]
		n := x.Shape().Dimensions[ax.InputSpatial[i]]
		m := w.Shape().Dimensions[ax.KernelSpatial[i]]
		o := node.Shape().Dimensions[ax.OutputSpatial[i]]
		reversed := dilated(m, rhsDilation) - 1 - p
		toInput = append(toInput, windowOf(lhsDilation, stride, rhsDilation, reversed, o, m, n))
		if exchange {
			toKernel = append(toKernel, windowOf(rhsDilation, stride, lhsDilation, reversed, o, n, m))
		} else {
			toKernel = append(toKernel, windowOf(rhsDilation, lhsDilation, stride, p, n, o, m))
		}
	}

	inputAxes := graph.ConvolveAxesConfig{
		InputBatch: ax.OutputBatch, InputChannels: ax.OutputChannels, InputSpatial: ax.OutputSpatial,
		KernelInputChannels: ax.KernelOutputChannels, KernelOutputChannels: ax.KernelInputChannels,
		KernelSpatial: ax.KernelSpatial,
		OutputBatch:   ax.InputBatch, OutputChannels: ax.InputChannels, OutputSpatial: ax.InputSpatial,
	}
	toX := convolve(v, Reverse(w, ax.KernelSpatial...), inputAxes, toInput)
	if exchange {
		return []*graph.Node{toX, Reverse(convolve(v, x, graph.ConvolveAxesConfig{
			InputBatch: ax.OutputChannels, InputChannels: ax.OutputBatch, InputSpatial: ax.OutputSpatial,
			KernelInputChannels: ax.InputBatch, KernelOutputChannels: ax.InputChannels, KernelSpatial: ax.InputSpatial,
			OutputBatch: ax.KernelOutputChannels, OutputChannels: ax.KernelInputChannels, OutputSpatial: ax.KernelSpatial,
		}, toKernel), ax.KernelSpatial...)}
	}
	return []*graph.Node{toX, convolve(x, v, graph.ConvolveAxesConfig{
		InputBatch: ax.InputChannels, InputChannels: ax.InputBatch, InputSpatial: ax.InputSpatial,
		KernelInputChannels: ax.OutputBatch, KernelOutputChannels: ax.OutputChannels, KernelSpatial: ax.OutputSpatial,
		OutputBatch: ax.KernelInputChannels, OutputChannels: ax.KernelOutputChannels, OutputSpatial: ax.KernelSpatial,
	}, toKernel)}
}

// convolve convolves with one window per spatial axis.
func convolve(x, w *graph.Node, axes graph.ConvolveAxesConfig, windows []window) *graph.Node {
	var strides, lhs, rhs []int
	var pads [][2]int
	for _, w := range windows {
		strides, lhs, rhs = append(strides, w.stride), append(lhs, w.lhsDilation), append(rhs, w.rhsDilation)
		pads = append(pads, w.pad)
	}
	return graph.ConvGeneral(x, w, axes, strides, pads, lhs, rhs, 1, 1)
}
