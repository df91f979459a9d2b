package graphnet

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

func convolutions() map[string]rule {
	return map[string]rule{
		"conv2d.default": convolve, "conv2d.padding": convolve, "conv_transpose2d.input": convolveBack,
		"convolution.default": convolution,
	}
}

// convolution is the form that both take when an exporter has taken them apart.
func convolution(c *call) value {
	if c.bool("transposed") {
		return convolveBack(c)
	}
	return convolve(c)
}

// convolve is a convolution [B, I, H, W] → [B, O, H', W']. Groups are convolved one by one.
func convolve(c *call) value {
	x, w := c.floating("input"), c.floating("weight")
	if x.rank() != 4 || w.rank() != 4 {
		refuse("want an image and a kernel of four axes, got %v and %v", x.dims(), w.dims())
	}
	n := nn.Window{Stride: c.two("stride", 1), Dilate: c.two("dilation", 1)}
	k := w.dims()
	switch pad, words := c.o.args["padding"].(string); {
	case words && pad == "valid":
	case words && pad == "same":
		for i := range n.Pad {
			all := (k[2+i] - 1) * n.Dilate[i]
			n.Pad[i] = [2]int{all / 2, all - all/2}
		}
	case words:
		refuse("padding must be same, valid or numbers, got %q", shorten(pad))
	default:
		for i, p := range c.two("padding", 0) {
			n.Pad[i] = [2]int{p, p}
		}
	}
	positive(n.Stride, n.Dilate)
	return c.b.grouped(c, x, w.in(2, 3, 1, 0), n, k[0])
}

// convolveBack is a transposed convolution [B, I, H, W] → [B, O, H', W'] with a kernel
// [I, O, K, L]: a convolution of the spread image with the kernel run backwards.
func convolveBack(c *call) value {
	x, w := c.floating("input"), c.floating("weight")
	if x.rank() != 4 || w.rank() != 4 {
		refuse("want an image and a kernel of four axes, got %v and %v", x.dims(), w.dims())
	}
	if g := c.intOr("groups", 1); g != 1 {
		refuse("transposed convolutions in %d groups have no rule", g)
	}
	n := nn.Window{Spread: c.two("stride", 1), Dilate: c.two("dilation", 1)}
	positive(n.Spread, n.Dilate)
	k, pad, more := w.dims(), c.two("padding", 0), c.two("output_padding", 0)
	for i := range n.Pad {
		lead := (k[2+i]-1)*n.Dilate[i] - pad[i]
		n.Pad[i] = [2]int{lead, lead + more[i]}
		if lead < 0 || more[i] < 0 {
			refuse("padding %d is more than the kernel's reach", pad[i])
		}
	}
	return c.b.grouped(c, x, autodiff.Reverse(w.in(2, 3, 0, 1), 0, 1), n, k[1])
}

func positive(pairs ...[2]int) {
	for _, p := range pairs {
		if p[0] < 1 || p[1] < 1 || p[0] > maxSize || p[1] > maxSize {
			refuse("strides and dilations are positive, got %v", p)
		}
	}
}

// grouped convolves x with w [K, L, I/groups, O] and adds the bias.
func (b *builder) grouped(c *call, x value, w *Node, n nn.Window, out int) value {
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

// depthwise convolves each channel with a kernel of its own, w [K, L, 1, C]: a sum of shifted
// images, which can be differentiated any number of times where grouped convolutions cannot.
func depthwise(x, w *Node, n nn.Window) *Node {
	k := w.Shape().Dimensions
	for i := range n.Pad {
		x = padded(x, 1+i, n.Pad[i][0], n.Pad[i][1])
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
