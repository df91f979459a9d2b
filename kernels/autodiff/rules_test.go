package autodiff_test

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/gradcheck"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

type node = graph.Node

// nhwc is the order of axes of this module's convolutions.
var nhwc = graph.ConvolveAxesConfig{
	InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
	KernelSpatial: []int{0, 1}, KernelInputChannels: 2, KernelOutputChannels: 3,
	OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
}

// nchw is PyTorch's.
var nchw = graph.ConvolveAxesConfig{
	InputBatch: 0, InputChannels: 1, InputSpatial: []int{2, 3},
	KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: []int{2, 3},
	OutputBatch: 0, OutputChannels: 1, OutputSpatial: []int{2, 3},
}

func conv(axes graph.ConvolveAxesConfig, stride, lhs, rhs [2]int, pad [2][2]int) func(x []*node) *node {
	return func(x []*node) *node {
		return graph.ConvGeneral(x[0], x[1], axes, stride[:], pad[:], lhs[:], rhs[:], 1, 1)
	}
}

var (
	ones = [2]int{1, 1}
	same = [2][2]int{{1, 1}, {1, 1}}
	none = [2][2]int{}
)

func unary(f func(*node) *node) func(x []*node) *node {
	return func(x []*node) *node { return f(x[0]) }
}

// positive moves the entries of x, in (−1, 1), to (0.5, 2.5).
func positive(x *node) *node { return graph.AddScalar(x, 1.5) }

func binary(f func(a, b *node) *node) func(x []*node) *node {
	return func(x []*node) *node { return f(x[0], x[1]) }
}

// TestDerivatives holds the rules of this package, and compositions of them. The library's own rules of single
// operations are held in package graphnet.
func TestDerivatives(t *testing.T) {
	cases := []struct {
		name  string
		sizes [][]int
		op    func(x []*node) *node
	}{
		{"conv 3x3", [][]int{{2, 4, 5, 2}, {3, 3, 2, 3}}, conv(nhwc, ones, ones, ones, same)},
		{"conv 1x1", [][]int{{2, 3, 2, 2}, {1, 1, 2, 3}}, conv(nhwc, ones, ones, ones, none)},
		{"conv valid", [][]int{{1, 5, 4, 2}, {2, 3, 2, 2}}, conv(nhwc, ones, ones, ones, none)},
		{"conv wide padding", [][]int{{1, 3, 3, 2}, {3, 3, 2, 2}}, conv(nhwc, ones, ones, ones, [2][2]int{{2, 2}, {2, 1}})},
		{"conv nchw", [][]int{{2, 2, 4, 3}, {3, 2, 3, 3}}, conv(nchw, ones, ones, ones, same)},
		{"conv strided", [][]int{{1, 6, 5, 2}, {3, 3, 2, 2}}, conv(nhwc, [2]int{2, 2}, ones, ones, same)},
		{"conv input dilated", [][]int{{1, 3, 3, 2}, {3, 3, 2, 2}}, conv(nhwc, ones, [2]int{2, 3}, ones, same)},
		{"conv kernel dilated", [][]int{{1, 6, 6, 1}, {3, 2, 1, 2}}, conv(nhwc, ones, ones, [2]int{2, 3}, same)},
		// With far fewer outputs than inputs the kernel's gradient takes another way.
		{"conv few outputs", [][]int{{2, 4, 5, 3}, {3, 3, 3, 1}}, conv(nhwc, ones, ones, ones, [2][2]int{{1, 2}, {0, 1}})},
		{"conv few outputs nchw", [][]int{{2, 3, 4, 3}, {1, 3, 2, 3}}, conv(nchw, ones, ones, ones, same)},
		{"conv few outputs strided", [][]int{{1, 6, 5, 3}, {3, 3, 3, 1}}, conv(nhwc, [2]int{2, 2}, ones, ones, same)},
		{"conv few outputs input dilated", [][]int{{1, 3, 3, 3}, {3, 3, 3, 1}}, conv(nhwc, ones, [2]int{2, 3}, ones, same)},
		{"conv few outputs kernel dilated", [][]int{{1, 6, 6, 3}, {3, 2, 3, 1}}, conv(nhwc, ones, ones, [2]int{2, 3}, same)},

		{"dot vector vector", [][]int{{4}, {4}}, binary(graph.Dot)},
		{"dot matrix vector", [][]int{{3, 4}, {4}}, binary(graph.Dot)},
		{"dot matrix matrix", [][]int{{3, 4}, {4, 2}}, binary(graph.Dot)},
		{"product transposed", [][]int{{3, 4}, {2, 4}}, binary(func(a, b *node) *node {
			return graph.DotGeneral(a, []int{1}, nil, b, []int{1}, nil)
		})},
		{"product in any order", [][]int{{2, 4, 3, 2, 5}, {3, 5, 2, 3, 2}}, binary(func(a, b *node) *node {
			return graph.DotGeneral(a, []int{4, 2}, []int{3, 0}, b, []int{1, 0}, []int{4, 2})
		})},
		{"product outer", [][]int{{2, 3}, {2, 2}}, binary(func(a, b *node) *node {
			return graph.DotGeneral(a, nil, []int{0}, b, nil, []int{0})
		})},
		{"attention", [][]int{{2, 3, 2, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}}, func(x []*node) *node {
			w := graph.Softmax(graph.Einsum("bqhc,bkhc->bhqk", x[0], x[1]), -1)
			return graph.Einsum("bhqk,bkhc->bqhc", w, x[2])
		}},

		{"slice", [][]int{{4, 5}}, unary(func(x *node) *node {
			return graph.Slice(x, graph.AxisRange(1, 3), graph.AxisRange(2))
		})},
		{"reverse", [][]int{{3, 2, 4}}, unary(func(x *node) *node { return graph.Square(autodiff.Reverse(x, 0, 2)) })},
		{"slice strided", [][]int{{4, 7}}, unary(func(x *node) *node {
			return graph.Slice(x, graph.AxisRange().Stride(2), graph.AxisRange(1).Stride(3))
		})},
		{"concatenate", [][]int{{2, 3}, {2, 1}}, binary(func(a, b *node) *node {
			return graph.Concatenate([]*node{a, b}, 1)
		})},
		{"broadcast in arithmetic", [][]int{{2, 3}, {1, 3}, {2, 1}}, func(x []*node) *node {
			return graph.Div(graph.Mul(x[0], x[1]), positive(x[2]))
		}},
		{"where", [][]int{{5}, {5}}, binary(func(a, b *node) *node {
			return graph.Where(graph.GreaterThan(a, b), graph.Square(a), graph.Exp(b))
		})},
		{"reduce max", [][]int{{2, 5}}, unary(func(x *node) *node { return graph.ReduceMax(graph.Square(positive(x)), 1) })},
		{"reduce min", [][]int{{2, 5}}, unary(func(x *node) *node { return graph.ReduceAllMin(graph.Square(positive(x))) })},
		{"max and min", [][]int{{6}, {6}}, binary(func(a, b *node) *node {
			return graph.Mul(graph.Max(a, b), graph.Min(graph.Square(a), b))
		})},
		{"abs", [][]int{{6}}, unary(func(x *node) *node { return graph.Mul(graph.Abs(x), x) })},
		{"rsqrt", [][]int{{6}}, unary(func(x *node) *node { return graph.Rsqrt(positive(x)) })},
		{"expm1", [][]int{{6}}, unary(graph.Expm1)},
		{"identity", [][]int{{6}}, unary(func(x *node) *node { return graph.Identity(graph.Square(x)) })},
		{"sign is flat", [][]int{{6}}, unary(func(x *node) *node { return graph.Mul(graph.Sign(x), graph.Square(x)) })},
	}
	dev := devicetest.Fast(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { gradcheck.Check(t, dev, c.name, c.sizes, c.op) })
	}
}
