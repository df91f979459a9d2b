package graphnet

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

// view takes the sizes that the file declares, −1 being resolved there.
func view(c *call) value {
	x, to := c.tensor("self"), c.target()
	if product(x.dims()) != product(to) {
		refuse("cannot give %v the shape %v", x.dims(), to)
	}
	return x.reshape(to)
}

func product(d []int) int {
	n := 1
	for _, v := range d {
		n *= v
	}
	return n
}

// permuted returns v with PyTorch's axis i the one that was axes[i].
func permuted(v value, axes []int) value {
	at := make([]int, len(axes))
	for i, a := range axes {
		at[i] = v.order[a]
	}
	return value{n: v.n, order: at}
}

func permute(c *call) value {
	x := c.tensor("self")
	axes := c.axes("dims", x.rank())
	if len(axes) != x.rank() {
		refuse("dims must name all %d axes, got %v", x.rank(), axes)
	}
	return permuted(x, axes)
}

func unsqueeze(c *call) value {
	x := c.tensor("self")
	return insert(x, axis(c.int("dim"), x.rank()+1))
}

// insert puts an axis of size one before PyTorch's axis i, and stores it before that axis too.
func insert(x value, i int) value {
	place := x.rank()
	if i < x.rank() {
		place = x.order[i]
	}
	at := slices.Clone(x.order)
	for k := range at {
		if at[k] >= place {
			at[k]++
		}
	}
	d := slices.Insert(slices.Clone(x.n.Shape().Dimensions), place, 1)
	return value{n: graph.Reshape(x.n, d...), order: slices.Insert(at, i, place)}
}

func squeeze(c *call) value {
	x := c.tensor("self")
	d := x.dims()
	if len(d) == 0 {
		return x
	}
	var gone []int
	for _, a := range c.axes("dim", len(d)) {
		if d[a] == 1 {
			gone = append(gone, a)
		}
	}
	return drop(x, gone)
}

// drop takes out axes of size one.
func drop(x value, gone []int) value {
	var d []int
	for place, size := range x.n.Shape().Dimensions {
		if !slices.ContainsFunc(gone, func(a int) bool { return x.order[a] == place }) {
			d = append(d, size)
		}
	}
	return x.withoutAxes(graph.Reshape(x.n, d...), gone)
}

func expand(c *call) value { return expanded(c.tensor("self"), c.target()) }

// expanded returns x with sizes of one made those of to, which may have more axes before.
func expanded(x value, to []int) value {
	if x.rank() > len(to) {
		refuse("cannot expand %v to %v", x.dims(), to)
	}
	x = x.raise(len(to))
	for i, have := range x.dims() {
		if have != to[i] && have != 1 {
			refuse("cannot expand %v to %v", x.dims(), to)
		}
	}
	return broadcast(x, to)
}

// broadcast returns x with sizes of one made those of to, in PyTorch's order.
func broadcast(x value, to []int) value {
	if slices.Equal(x.dims(), to) {
		return x
	}
	d := make([]int, len(to))
	for i, a := range x.order {
		d[a] = to[i]
	}
	return x.withNode(graph.BroadcastToDims(x.n, d...))
}

func repeat(c *call) value {
	times := c.ints("repeats")
	x := c.tensor("self")
	if len(times) < x.rank() {
		refuse("repeats must be one number for each axis, got %v", times)
	}
	x = x.raise(len(times))
	for i, n := range times {
		if n < 1 || n > maxParts {
			refuse("repeats must lie in 1 … %d, got %v", maxParts, times)
		}
		if n > 1 {
			x = x.withNode(graph.Concatenate(slices.Repeat([]*Node{x.n}, n), x.order[i]))
		}
	}
	return x
}

func flip(c *call) value {
	x := c.tensor("self")
	var places []int
	for _, a := range c.axes("dims", x.rank()) {
		places = append(places, x.order[a])
	}
	return x.withNode(autodiff.Reverse(x.n, places...))
}

func concatenate(c *call) value {
	xs := c.tensors("tensors")
	lead := xs[0]
	a := c.axis("dim", 0, lead.rank())
	nodes := make([]*Node, len(xs))
	for i, x := range xs {
		if x.rank() != lead.rank() {
			refuse("tensors must have the same number of axes")
		}
		nodes[i] = graph.ConvertDType(x.inOrderOf(lead), lead.n.DType())
	}
	if len(nodes) == 1 {
		return lead
	}
	return lead.withNode(graph.Concatenate(nodes, lead.order[a]))
}

func stack(c *call) value {
	xs := c.tensors("tensors")
	a := c.axis("dim", 0, xs[0].rank()+1)
	nodes := make([]*Node, len(xs))
	for i, x := range xs {
		nodes[i] = insert(torchOrder(x.inTorchOrder()), a).n
	}
	return torchOrder(graph.Concatenate(nodes, a))
}

// pad puts borders around the last axes.
func pad(c *call) value {
	x, pads, mode := c.tensor("self"), c.ints("pad"), c.str("mode")
	if len(pads)%2 != 0 || len(pads)/2 > x.rank() {
		refuse("pad must be pairs for the last axes, got %v", pads)
	}
	n := x.n
	for i := 0; i < len(pads); i += 2 {
		a := x.rank() - 1 - i/2
		lo, hi := pads[i], pads[i+1]
		size := x.dims()[a]
		if lo > maxSize || hi > maxSize || size+lo+hi < 1 || -lo >= size || -hi >= size {
			refuse("pad %v does not suit %v", pads, x.dims())
		}
		n = bordered(n, x.order[a], lo, hi, mode, c.float("value", 0))
	}
	return x.withNode(n)
}

// bordered adds entries before and behind those of x along an axis, or removes entries if a number is negative. By mode
// they are v, the entries mirrored at the outermost one, the outermost one itself, or those of the other end.
func bordered(x *Node, axis, before, behind int, mode string, v float64) *Node {
	x = autodiff.Padded(x, axis, min(before, 0), min(behind, 0))
	before, behind = max(before, 0), max(behind, 0)
	size := x.Shape().Dimensions[axis]
	part := func(from, to int) *Node {
		if from < 0 || to > size {
			refuse("borders of %d and %d entries are too wide for %d in mode %q", before, behind, size, shorten(mode))
		}
		return graph.SliceAxis(x, axis, graph.AxisRange(from, to))
	}
	border := func(n, edge int) *Node { // edge is 0 at the front, 1 at the end
		d := slices.Clone(x.Shape().Dimensions)
		d[axis] = n
		switch mode {
		case "", "constant":
			return graph.BroadcastToDims(graph.Scalar(x.Graph(), x.DType(), v), d...)
		case "reflect":
			from := 1 + edge*(size-2-n)
			return autodiff.Reverse(part(from, from+n), axis)
		case "replicate":
			return graph.BroadcastToDims(part(edge*(size-1), edge*(size-1)+1), d...)
		case "circular":
			from := (1 - edge) * (size - n)
			return part(from, from+n)
		}
		refuse("mode must be constant, reflect, replicate or circular, got %q", shorten(mode))
		return nil
	}
	parts := []*Node{x}
	if before > 0 {
		parts = []*Node{border(before, 0), x}
	}
	if behind > 0 {
		parts = append(parts, border(behind, 1))
	}
	if len(parts) == 1 {
		return x
	}
	return graph.Concatenate(parts, axis)
}

// pixelShuffle maps [B, C r², H, W] to [B, C, H r, W r].
func pixelShuffle(c *call) value {
	x, r := c.tensor("self"), c.int("upscale_factor")
	d := x.dims()
	if len(d) != 4 || r < 1 || r > maxSize || d[1]%(r*r) != 0 {
		refuse("cannot shuffle %v by %d", d, r)
	}
	y := x.reshape([]int{d[0], d[1] / (r * r), r, r, d[2], d[3]})
	return permuted(y, []int{0, 1, 4, 2, 5, 3}).reshape([]int{d[0], d[1] / (r * r), d[2] * r, d[3] * r})
}

// pixelUnshuffle is its inverse.
func pixelUnshuffle(c *call) value {
	x, r := c.tensor("self"), c.int("downscale_factor")
	d := x.dims()
	if len(d) != 4 || r < 1 || d[2]%r != 0 || d[3]%r != 0 {
		refuse("cannot unshuffle %v by %d", d, r)
	}
	y := x.reshape([]int{d[0], d[1], d[2] / r, r, d[3] / r, r})
	return permuted(y, []int{0, 1, 3, 5, 2, 4}).reshape([]int{d[0], d[1] * r * r, d[2] / r, d[3] / r})
}
