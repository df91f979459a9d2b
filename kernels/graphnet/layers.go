package graphnet

import (
	"math"
	"slices"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// convolution is one [B, I, H, W] → [B, O, H', W'], or a transposed one.
func convolution(c *call) value {
	x, w := c.floating("input"), c.floating("weight")
	if x.rank() != 4 || w.rank() != 4 {
		refuse("input and weight must have four axes, got %v and %v", x.dims(), w.dims())
	}
	stride, dilate := c.two("stride", 1), c.two("dilation", 1)
	positive(stride, dilate)
	if c.o.Op == "conv_transpose2d.input" || c.bool("transposed") {
		return c.convolveBack(x, w, nn.Window{Spread: stride, Dilate: dilate})
	}
	n := nn.Window{Stride: stride, Dilate: dilate}
	switch pad, words := c.o.Args["padding"].(string); {
	case words && pad == "same":
		for i := range n.Pad {
			all := (w.dims()[2+i] - 1) * n.Dilate[i]
			n.Pad[i] = [2]int{all / 2, all - all/2}
		}
	case !words:
		for i, p := range c.two("padding", 0) {
			n.Pad[i] = [2]int{p, p}
		}
	case pad != "valid":
		refuse("padding must be same, valid or numbers, got %q", shorten(pad))
	}
	return c.convolve(x, w.in(2, 3, 1, 0), n, w.dims()[0])
}

// convolveBack is a transposed convolution with a kernel [I, O, K, L]: a convolution of the spread image with the
// kernel run backwards.
func (c *call) convolveBack(x, w value, n nn.Window) value {
	if g := c.intOr("groups", 1); g != 1 {
		refuse("transposed convolutions in %d groups have no rule", g)
	}
	k, pad, more := w.dims(), c.two("padding", 0), c.two("output_padding", 0)
	for i := range n.Pad {
		lead := (k[2+i]-1)*n.Dilate[i] - pad[i]
		n.Pad[i] = [2]int{lead, lead + more[i]}
		if lead < 0 || more[i] < 0 {
			refuse("padding %d is more than the kernel's reach", pad[i])
		}
	}
	return c.convolve(x, autodiff.Reverse(w.in(2, 3, 0, 1), 0, 1), n, k[1])
}

func positive(pairs ...[2]int) {
	for _, p := range pairs {
		if p[0] < 1 || p[1] < 1 || p[0] > maxSize || p[1] > maxSize {
			refuse("strides and dilations are positive, got %v", p)
		}
	}
}

// convolve convolves x with w [K, L, I/groups, O] and adds the bias. Groups are convolved one by one.
func (c *call) convolve(x value, w *Node, n nn.Window, out int) value {
	for _, p := range n.Pad {
		if p[0] < 0 || p[1] < 0 || p[0] > maxSize || p[1] > maxSize {
			refuse("padding must lie in 0 … %d, got %v", maxSize, p)
		}
	}
	img, groups := x.nhwc(), c.intOr("groups", 1)
	w = graph.ConvertDType(w, img.DType())
	in := img.Shape().Dimensions[3]
	if groups < 1 || groups > maxGroups || in%groups != 0 || out%groups != 0 {
		refuse("%d channels cannot be convolved to %d in %d groups", in, out, groups)
	}
	if have := w.Shape().Dimensions[2]; have != in/groups {
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
			part := func(x *Node, size int) *Node { return graph.SliceAxis(x, 3, graph.AxisRange(i*size, (i+1)*size)) }
			parts[i] = n.Convolve(part(img, in/groups), part(w, out/groups))
		}
		y = graph.Concatenate(parts, 3)
	}
	if bias := c.vector("bias", out); bias != nil {
		y = nn.Shift(y, graph.Reshape(bias, 1, 1, 1, out))
	}
	return image(y)
}

// pointwise multiplies the channels of each group of x [B, H, W, I] by its part of w [1, 1, I/groups, O]: one product
// with a batch of groups. XLA for CUDA cannot compile some products of slices of channels.
func pointwise(x, w *Node, groups int) *Node {
	d, out := x.Shape().Dimensions, w.Shape().Dimensions[3]
	x = graph.Reshape(x, d[0], d[1], d[2], groups, d[3]/groups)
	w = graph.Reshape(w, d[3]/groups, groups, out/groups)
	y := graph.DotGeneral(x, []int{4}, []int{3}, w, []int{0}, []int{1}) // [groups, B, H, W, O/groups]
	return graph.Reshape(graph.TransposeAllAxes(y, 1, 2, 3, 0, 4), d[0], d[1], d[2], out)
}

// depthwise convolves each channel with a kernel of its own, w [K, L, 1, C]: a sum of shifted images, which can be
// differentiated any number of times where grouped convolutions cannot.
func depthwise(x, w *Node, n nn.Window) *Node {
	k := w.Shape().Dimensions
	for i := range n.Pad {
		x = autodiff.Padded(x, 1+i, n.Pad[i][0], n.Pad[i][1])
	}
	d := x.Shape().Dimensions
	var y *Node
	for p := range k[0] {
		for q := range k[1] {
			tap := graph.Reshape(graph.Slice(w, graph.AxisElem(p), graph.AxisElem(q)), 1, 1, 1, k[3])
			from := [2]int{p * n.Dilate[0], q * n.Dilate[1]}
			rows := reach(d[1], k[0], n.Dilate[0], n.Stride[0])
			cols := reach(d[2], k[1], n.Dilate[1], n.Stride[1])
			s := graph.SliceAxis(x, 1, graph.AxisRange(from[0], from[0]+rows).Stride(n.Stride[0]))
			s = graph.SliceAxis(s, 2, graph.AxisRange(from[1], from[1]+cols).Stride(n.Stride[1]))
			s = graph.Mul(s, tap)
			if y == nil {
				y = s
			} else {
				y = graph.Add(y, s)
			}
		}
	}
	return y
}

// reach returns how many entries of a padded axis one tap runs over.
func reach(size, taps, dilate, stride int) int {
	out := (size-(taps-1)*dilate-1)/stride + 1
	if out < 1 {
		refuse("the kernel is larger than the image")
	}
	return (out-1)*stride + 1
}

// groupNorm normalises [B, C, …] whatever the axes behind the channels are.
func groupNorm(c *call) value { return c.groups(c.floating("input"), c.int("num_groups")) }

// instanceNorm is a group norm of one channel each. It has no running statistics.
func instanceNorm(c *call) value {
	if c.has("running_mean") && !c.bool("use_input_stats") {
		refuse("running statistics have no rule")
	}
	x := c.floating("input")
	return c.groups(x, x.dims()[axis(1, x.rank())])
}

func (c *call) groups(x value, groups int) value {
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
	layer := c.o.Op == "layer_norm.default"
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
		mask = m.raise(4).plain()
		if mask.DType() == lib.Bool {
			zero := graph.Scalar(c.b.g, c.b.wide, 0)
			zero = graph.BroadcastToDims(zero, mask.Shape().Dimensions...)
			mask = graph.Where(mask, zero, graph.AddScalar(zero, -1e30))
		}
		mask = nn.Wide(mask)
	}
	scale := c.float("scale", 1/math.Sqrt(float64(dq[3])))
	return stored(nn.Attend(q.in(0, 2, 1, 3), k.in(0, 2, 1, 3), v.in(0, 2, 1, 3), scale, mask), 0, 2, 1, 3)
}

func softmax(c *call) value {
	x := c.floating("self")
	a := x.at[c.axis("dim", -1, x.rank())]
	return x.with(graph.ConvertDType(graph.Softmax(nn.Wide(x.n), a), x.n.DType()))
}

// image returns the node of the image input or self, with its sizes.
func (c *call) image() (*Node, []int) {
	name := "self"
	if c.has("input") {
		name = "input"
	}
	x := c.floating(name)
	if x.rank() != 4 {
		refuse("%s must be an image [B, C, H, W], got %v", name, x.dims())
	}
	n := x.nhwc()
	return n, n.Shape().Dimensions
}

// nearest repeats pixels to the size that the file declares, a multiple of the image's.
func nearest(c *call) value {
	n, d := c.image()
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
	n, d := c.image()
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
