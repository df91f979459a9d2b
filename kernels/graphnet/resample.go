package graphnet

import (
	"math"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// image returns the node of the image input or self with its sizes, and the sizes behind the channels that the file
// declares for the result.
func (c *call) image() (n *Node, d, to []int) {
	name := "self"
	if c.has("input") {
		name = "input"
	}
	x, to := c.floating(name), c.target()
	if x.rank() < 3 || len(to) != x.rank() {
		refuse("%s must be an image [B, C, H, W], and so the result, got %v and %v", name, x.dims(), to)
	}
	n = x.image()
	return n, n.Shape().Dimensions, to[2:]
}

// nearest repeats pixels to the size that the file declares.
func nearest(c *call) value {
	n, d, to := c.image()
	last := len(d) - 1
	apart, wide, out := d[:1:1], d[:1:1], d[:1:1]
	for i, size := range to {
		if size%d[1+i] != 0 {
			return resample(c)
		}
		apart, wide, out = append(apart, d[1+i], 1), append(wide, d[1+i], size/d[1+i]), append(out, size)
	}
	n = graph.BroadcastToDims(graph.Reshape(n, append(apart, d[last])...), append(wide, d[last])...)
	return image(graph.Reshape(n, append(out, d[last])...))
}

// average takes the mean of windows of pixels.
func average(c *call) value {
	n, d, to := c.image()
	wide := nn.Wide(n)
	last := len(d) - 1
	kernel := make([]int, len(to))
	apart, over := d[:1:1], []int{}
	blocks := true
	for i, size := range to {
		if blocks = blocks && size > 0 && d[1+i]%size == 0; blocks {
			kernel[i] = d[1+i] / size
			apart, over = append(apart, size, kernel[i]), append(over, 2+2*i)
		}
	}
	adaptive := !c.has("kernel_size")
	switch {
	case adaptive && !blocks:
		return resample(c)
	case !adaptive:
		k := c.each("kernel_size", len(to), 1)
		overlap := len(c.ints("stride")) > 0 && !slices.Equal(c.each("stride", len(to), 1), k)
		padded := slices.Max(c.each("padding", len(to), 0)) > 0
		kernel, blocks = k, blocks && slices.Equal(k, kernel) && !overlap && !padded
	}
	if blocks {
		wide = graph.ReduceMean(graph.Reshape(wide, append(apart, d[last])...), over...)
		return image(graph.ConvertDType(wide, n.DType()))
	}
	sum := func(x *Node) *Node { return c.pooled(x, kernel, to, 0, graph.Add) }
	y := sum(wide)
	if c.has("divisor_override") || c.bool("ceil_mode") {
		refuse("divisor_override and ceil_mode have no rule")
	}
	if all, given := c.o.Args["count_include_pad"].(bool); given && !all {
		y = graph.Div(y, sum(graph.OnesLike(wide)))
	} else {
		y = graph.MulScalar(y, 1/float64(product(kernel)))
	}
	return image(graph.ConvertDType(y, n.DType()))
}

// largest takes the largest pixel of each window, the first of equal ones as PyTorch does.
func largest(c *call) value {
	n, _, to := c.image()
	first := func(x, y *Node) *Node { return graph.Where(graph.GreaterThan(y, x), y, x) }
	return image(c.pooled(n, c.each("kernel_size", len(to), 1), to, math.Inf(-1), first))
}

// pooled combines by f the entries in each window of an image x with borders of v. The file declares the number of
// windows.
func (c *call) pooled(x *Node, kernel, to []int, v float64, f func(x, y *Node) *Node) *Node {
	stride := "stride"
	if len(c.ints(stride)) == 0 {
		stride = "kernel_size"
	}
	n, pads := c.window(stride, len(to)), c.each("padding", len(to), 0)
	for i, p := range pads {
		behind := (to[i]-1)*n[i].Stride + (kernel[i]-1)*n[i].Dilate + 1 - x.Shape().Dimensions[1+i] - p
		if kernel[i] < 1 || p < 0 || p > maxSize || to[i] < 1 || behind > maxSize {
			refuse("windows of %v do not make %v", kernel, to)
		}
		x = bordered(x, 1+i, p, behind, "constant", v)
	}
	met := taps(x, kernel, n)
	y := met[0]
	for _, m := range met[1:] {
		y = f(y, m)
	}
	return y
}

// resample takes weighted means of pixels along one axis after the other, to the size that the file declares.
func resample(c *call) value {
	x, d, to := c.image()
	v := image(nn.Wide(x))
	scales := c.list("scale_factors")
	for i, m := range to {
		n := d[1+i]
		if m < 1 || n*m > maxMatrix {
			refuse("%d pixels cannot become %d", n, m)
		}
		scale := float32(n) / float32(m)
		if len(scales) == len(to) {
			if by, ok := scales[i].(float64); ok && by > 0 {
				scale = float32(1 / by)
			}
		}
		rows := make([][]float64, m)
		for k := range rows {
			rows[k] = c.weights(k, n, m, scale)
		}
		place := v.order[2+i]
		matrix := graph.ConvertDType(graph.Const(c.b.g, rows), v.n.DType())
		y := graph.DotGeneral(v.n, []int{place}, nil, matrix, []int{1}, nil)
		at := slices.Clone(v.order)
		for k, a := range at {
			if a > place {
				at[k]--
			}
		}
		at[2+i] = len(at) - 1
		v = value{n: y, order: at}
	}
	v.n = graph.ConvertDType(v.n, x.DType())
	return v
}

// weights returns the weights of n pixels in the k-th of m, as in PyTorch's modes of interpolation and adaptive means;
// scale is the distance between new pixels, in old pixels.
func (c *call) weights(k, n, m int, scale float32) []float64 {
	row := make([]float64, n)
	add := func(at int, weight float64) { row[max(0, min(at, n-1))] += weight }
	centre := float64((float32(k)+0.5)*scale - 0.5)
	if c.bool("align_corners") {
		centre = float64(k) * float64(n-1) / float64(max(m-1, 1))
	}
	has := func(word string) bool { return strings.Contains(c.o.Op, word) }
	switch {
	case has("adaptive"):
		from, to := k*n/m, ((k+1)*n+m-1)/m
		for i := from; i < to; i++ {
			add(i, 1/float64(to-from))
		}
	case has("exact"):
		add(int((float32(k)+0.5)*scale), 1)
	case has("nearest"):
		add(int(float32(k)*scale), 1)
	case has("cubic"):
		low := math.Floor(centre)
		for i := -1; i <= 2; i++ {
			add(int(low)+i, cubic(math.Abs(centre-low-float64(i))))
		}
	default:
		centre = max(centre, 0)
		low := math.Floor(centre)
		add(int(low), 1-(centre-low))
		add(int(low)+1, centre-low)
	}
	return row
}

// cubic is Keys' kernel with a = −¾ at a distance up to 2.
func cubic(d float64) float64 {
	const a = -0.75
	if d <= 1 {
		return ((a+2)*d-(a+3))*d*d + 1
	}
	return ((a*d-5*a)*d+8*a)*d - 4*a
}
