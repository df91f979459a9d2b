package graphnet

import (
	"math"
	"slices"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// convolution is one [B, I, H, W] → [B, O, H', W'] or a transposed one, with any number of axes behind the channels.
func convolution(c *call) value {
	x, w := c.floating("input"), c.floating("weight")
	if x.rank() < 3 || w.rank() != x.rank() {
		refuse("input and weight must have three axes or more, and as many, got %v and %v", x.dims(), w.dims())
	}
	n := c.window("stride", x.rank()-2)
	if c.o.Op == "conv_transpose2d.input" || c.bool("transposed") {
		return c.convolveBack(x, w, n)
	}
	for i, p := range c.each("padding", len(n), 0) {
		n[i].Pad = [2]int{p, p}
	}
	return c.convolve(x, w.permuted(append(count(w.rank())[2:], 1, 0)...), n, w.dims()[0])
}

// window returns the strides and dilations for a number of axes.
func (c *call) window(stride string, axes int) nn.Window {
	n, dilate := make(nn.Window, axes), c.each("dilation", axes, 1)
	for i, s := range c.each(stride, axes, 1) {
		n[i] = nn.AxisWindow{Stride: s, Dilate: dilate[i]}
		if min(s, n[i].Dilate) < 1 || max(s, n[i].Dilate) > maxSize {
			refuse("strides and dilations are positive, got %d and %d", s, n[i].Dilate)
		}
	}
	return n
}

// groups returns the number of groups of a convolution.
func (c *call) groups(in, out int) int {
	groups := c.intOr("groups", 1)
	if groups < 1 || groups > maxGroups || in%groups != 0 || out%groups != 0 {
		refuse("%d channels cannot be convolved to %d in %d groups", in, out, groups)
	}
	return groups
}

// convolveBack is a transposed convolution with a kernel [I, O/groups, K, L]: a convolution of the spread image with
// the kernel run backwards.
func (c *call) convolveBack(x, w value, n nn.Window) value {
	axes := len(n)
	k, pad, more := w.dims(), c.each("padding", axes, 0), c.each("output_padding", axes, 0)
	for i := range n {
		lead := (k[2+i]-1)*n[i].Dilate - pad[i]
		n[i] = nn.AxisWindow{Spread: n[i].Stride, Stride: 1, Dilate: n[i].Dilate, Pad: [2]int{lead, lead + more[i]}}
		if lead < 0 || more[i] < 0 {
			refuse("padding %d is more than the kernel's reach", pad[i])
		}
	}
	kernel := autodiff.Reverse(w.permuted(append(count(2 + axes)[2:], 0, 1)...), count(axes)...)
	groups := c.groups(k[0], k[1]*c.intOr("groups", 1))
	if groups > 1 { // from [K, L, groups, I/groups, O/groups] to [K, L, I/groups, O]
		split := slices.Concat(k[2:], []int{groups, k[0] / groups, k[1]})
		order := append(count(axes), axes+1, axes, axes+2)
		kernel = graph.TransposeAllAxes(graph.Reshape(kernel, split...), order...)
		kernel = graph.Reshape(kernel, slices.Concat(k[2:], []int{k[0] / groups, groups * k[1]})...)
	}
	return c.convolve(x, kernel, n, groups*k[1])
}

// convolve convolves x with w [K, L, I/groups, O] and adds the bias. Groups are convolved one by one.
func (c *call) convolve(x value, w *Node, n nn.Window, out int) value {
	for _, a := range n {
		if p := a.Pad; p[0] < 0 || p[1] < 0 || p[0] > maxSize || p[1] > maxSize {
			refuse("padding must lie in 0 … %d, got %v", maxSize, p)
		}
	}
	img, last := x.image(), len(n)+1
	w = graph.ConvertDType(w, img.DType())
	in := img.Shape().Dimensions[last]
	groups := c.groups(in, out)
	if have := w.Shape().Dimensions[last-1]; have != in/groups {
		refuse("the kernel takes %d channels of %d in %d groups", have, in, groups)
	}
	var y *Node
	switch {
	case groups == 1:
		y = n.Convolve(img, w)
	case groups == in && out == in:
		y = depthwise(img, w, n)
	case n.Pointwise(w):
		y = pointwise(img, w, groups)
	default:
		parts := make([]*Node, groups)
		for i := range parts {
			part := func(x *Node, size int) *Node {
				return graph.SliceAxis(x, last, graph.AxisRange(i*size, (i+1)*size))
			}
			parts[i] = n.Convolve(part(img, in/groups), part(w, out/groups))
		}
		y = graph.Concatenate(parts, last)
	}
	if bias := c.vector("bias", out); bias != nil {
		y = nn.Shift(y, graph.Reshape(bias, append(slices.Repeat([]int{1}, last), out)...))
	}
	return image(y)
}

// pointwise multiplies the channels of each group of x [B, H, W, I] by its part of w [1, 1, I/groups, O]: one product
// with a batch of groups. XLA for CUDA cannot compile some products of slices of channels.
func pointwise(x, w *Node, groups int) *Node {
	d, last, out := x.Shape().Dimensions, x.Rank()-1, w.Shape().Dimensions[w.Rank()-1]
	x = graph.Reshape(x, append(d[:last:last], groups, d[last]/groups)...)
	w = graph.Reshape(w, d[last]/groups, groups, out/groups)
	y := graph.DotGeneral(x, []int{last + 1}, []int{last}, w, []int{0}, []int{1}) // [groups, B, H, W, O/groups]
	order := append(append(count(last + 1)[1:], 0), last+1)
	return graph.Reshape(graph.TransposeAllAxes(y, order...), append(d[:last:last], out)...)
}

// depthwise convolves each channel with its own kernel, w [K, L, 1, C]: a sum of shifted images, which can be
// differentiated any number of times, unlike grouped convolutions.
func depthwise(x, w *Node, n nn.Window) *Node {
	for i, a := range n {
		if a.Spread > 1 {
			size := x.Shape().Dimensions[1+i]
			x = autodiff.Embed(x, 1+i, 0, a.Spread, (size-1)*a.Spread+1)
		}
		x = autodiff.Padded(x, 1+i, a.Pad[0], a.Pad[1])
	}
	k := w.Shape().Dimensions
	each := graph.Reshape(w, -1, k[len(k)-1])
	var y *Node
	for i, met := range taps(x, k[:len(n)], n) {
		tap := graph.SliceAxis(each, 0, graph.AxisElem(i))
		tap = graph.Mul(met, graph.Reshape(tap, append(slices.Repeat([]int{1}, 1+len(n)), -1)...))
		if i > 0 {
			tap = graph.Add(y, tap)
		}
		y = tap
	}
	return y
}

// taps returns, for each tap of a kernel of that size, the entries of an image x that it multiplies.
func taps(x *Node, kernel []int, n nn.Window) []*Node {
	met := []*Node{x}
	for i, a := range n {
		run := reach(x.Shape().Dimensions[1+i], kernel[i], a.Dilate, a.Stride)
		if len(met)*kernel[i] > maxParts {
			refuse("a kernel of %v has too many taps; at most %d", kernel, maxParts)
		}
		var next []*Node
		for _, m := range met {
			for k := range kernel[i] {
				from := k * a.Dilate
				next = append(next, graph.SliceAxis(m, 1+i, graph.AxisRange(from, from+run).Stride(a.Stride)))
			}
		}
		met = next
	}
	return met
}

// reach returns the extent of the entries of a padded axis that one tap multiplies.
func reach(size, taps, dilate, stride int) int {
	out := (size-(taps-1)*dilate-1)/stride + 1
	if out < 1 {
		refuse("the kernel is larger than the image")
	}
	return (out-1)*stride + 1
}

// groupNorm normalises [B, C, …] whatever the axes behind the channels are.
func groupNorm(c *call) value { return c.normalizeGroups(c.floating("input"), c.int("num_groups")) }

// batchNorm is a batch norm in evaluation, with constant running statistics. It has no other results.
func batchNorm(c *call) value {
	x := c.floating("input")
	if x.rank() < 2 {
		refuse("input must have channels, got %v", x.dims())
	}
	channels := x.dims()[1]
	join := func(x value, v *Node, f func(x, y *Node) *Node) value {
		if v == nil {
			return x
		}
		return c.b.pair(x, torchOrder(v).reshape(append([]int{channels}, slices.Repeat([]int{1}, x.rank()-2)...)), f)
	}
	mean, variance := c.vector("running_mean", channels), c.vector("running_var", channels)
	if mean == nil || variance == nil {
		refuse("running_mean and running_var must be given")
	}
	x = join(x, mean, graph.Sub)
	x = join(x, graph.Rsqrt(graph.AddScalar(variance, c.float("eps", 1e-5))), graph.Mul)
	x = join(x, c.vector("weight", channels), graph.Mul)
	return value{parts: []value{join(x, c.vector("bias", channels), graph.Add)}}
}

// instanceNorm is a group norm of one channel each. It has no running statistics.
func instanceNorm(c *call) value {
	if c.has("running_mean") && !c.bool("use_input_stats") {
		refuse("running statistics have no rule")
	}
	x := c.floating("input")
	return c.normalizeGroups(x, x.dims()[axis(1, x.rank())])
}

func (c *call) normalizeGroups(x value, groups int) value {
	d := x.dims()
	if len(d) < 3 || groups < 1 || d[1]%groups != 0 {
		refuse("cannot normalise %v in %d groups", d, groups)
	}
	n := x.image()
	flat := graph.Reshape(n, d[0], -1, 1, d[1])
	y := nn.NormalizeGroups(flat, groups, c.float("eps", 1e-5), c.vector("weight", d[1]), c.vector("bias", d[1]))
	return image(graph.Reshape(y, n.Shape().Dimensions...))
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
	layer := c.o.Op == "layer_norm.default"
	if !layer {
		eps = 1.1920928955078125e-07 // PyTorch's: that of float32
	}
	y := torchOrder(nn.NormalizeLast(x.inTorchOrder(), len(shape), c.float("eps", eps), layer))
	if w, ok := c.optional("weight"); ok {
		y = c.b.pair(y, w, graph.Mul)
	}
	if w, ok := c.optional("bias"); ok {
		y = c.b.pair(y, w, graph.Add)
	}
	return y
}

// attend is Σ_k softmax_k(scale q·k + mask) v_k of q [B, heads, N, c] and k, v [B, heads, M, c].
func attend(c *call) value {
	q, k, v := c.floating("query"), c.floating("key"), c.floating("value")
	if q.rank() == 3 { // without heads
		heads := func(x value) value { return insert(x, 1) }
		return drop(c.attend(heads(q), heads(k), heads(v)), []int{1})
	}
	if q.rank() != 4 || k.rank() != 4 || v.rank() != 4 {
		refuse("query, key and value must have three or four axes, got %v", q.dims())
	}
	return c.attend(q, k, v)
}

func (c *call) attend(q, k, v value) value {
	if c.bool("is_causal") || c.float("dropout_p", 0) != 0 {
		refuse("is_causal and dropout_p have no rule")
	}
	dq, dk, dv := q.dims(), k.dims(), v.dims()
	if dq[1] != dk[1] || dq[3] != dk[3] || dk[2] != dv[2] || dk[1] != dv[1] {
		refuse("query, key and value have shapes %v, %v and %v", dq, dk, dv)
	}
	var mask *Node
	if m, ok := c.optional("attn_mask"); ok {
		mask = m.raise(4).inTorchOrder()
		if mask.DType() == lib.Bool {
			zero := graph.Scalar(c.b.g, c.b.wide, 0)
			zero = graph.BroadcastToDims(zero, mask.Shape().Dimensions...)
			mask = graph.Where(mask, zero, graph.AddScalar(zero, -1e30))
		}
		mask = nn.Wide(mask)
	}
	scale := c.float("scale", 1/math.Sqrt(float64(dq[3])))
	last := func(x value) *Node { return x.permuted(0, 2, 1, 3) } // from [B, heads, N, c] to [B, N, heads, c]
	return transposed(nn.Attend(last(q), last(k), last(v), scale, mask), 0, 2, 1, 3)
}

func softmax(c *call) value {
	x := c.floating("self")
	a := x.order[c.axis("dim", -1, x.rank())]
	return x.withNode(graph.ConvertDType(graph.Softmax(nn.Wide(x.n), a), x.n.DType()))
}
