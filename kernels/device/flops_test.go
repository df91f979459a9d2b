package device_test

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// convolve is a 3×3 convolution of x [2, 8, 8, 4] with w [3, 3, 4, 6], of 2 · (2·8·8·6) · (3·3·4) = 55,296 operations.
func convolve(x, w *graph.Node) *graph.Node {
	axes := graph.ConvolveAxesConfig{
		InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
		KernelSpatial: []int{0, 1}, KernelInputChannels: 2, KernelOutputChannels: 3,
		OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
	}
	one := []int{1, 1}
	return graph.ConvGeneral(x, w, axes, one, [][2]int{{1, 1}, {1, 1}}, one, one, 1, 1)
}

const convolution = 2 * (2 * 8 * 8 * 6) * (3 * 3 * 4)

// TestFLOPs compares with counts by hand. A derivative of a convolution by either argument is a convolution of as many
// operations, with the same taps on the padding.
func TestFLOPs(t *testing.T) {
	autodiff.Install()
	param := func(g *graph.Graph, name string, dims ...int) *graph.Node {
		return graph.Parameter(g, name, shapes.Make(dtypes.Float32, dims...))
	}
	conv := func(g *graph.Graph) (x, w, y *graph.Node) {
		x, w = param(g, "x", 2, 8, 8, 4), param(g, "w", 3, 3, 4, 6)
		return x, w, convolve(x, w)
	}
	sum := graph.ReduceAllSum
	cases := []struct {
		name string
		want int64
		draw drawing
	}{
		{"matrix product", 2 * 3 * 5 * 7, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Dot(param(g, "a", 3, 5), param(g, "b", 5, 7))}
		}},
		{"vector product", 2 * 5, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Dot(param(g, "a", 5), param(g, "b", 5))}
		}},
		{"batched product", 2 * 4 * 3 * 5 * 7, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.DotGeneral(param(g, "a", 5, 4, 3), []int{0}, []int{1}, param(g, "b", 4, 7, 5), []int{2},
				[]int{0})}
		}},
		{"elementwise", 0, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Tanh(param(g, "a", 5, 4, 3))}
		}},
		{"convolution", convolution, func(g *graph.Graph) []*graph.Node {
			_, _, y := conv(g)
			return []*graph.Node{y}
		}},
		{"what no output needs", 0, func(g *graph.Graph) []*graph.Node {
			x, _, _ := conv(g)
			return []*graph.Node{graph.Neg(x)}
		}},
		{"gradient by x alone", 2 * convolution, func(g *graph.Graph) []*graph.Node {
			x, _, y := conv(g)
			return graph.Gradient(sum(graph.Square(y)), x)
		}},
		{"gradient by x and w", 3 * convolution, func(g *graph.Graph) []*graph.Node {
			x, w, y := conv(g)
			return graph.Gradient(sum(graph.Square(y)), x, w)
		}},
		// a = 2 Jᵀ J x, ⟨a, z⟩ = 2⟨J x, J z⟩: its gradient 2 JᵀJ z is two convolutions more.
		{"double backward", 4 * convolution, func(g *graph.Graph) []*graph.Node {
			x, _, y := conv(g)
			a := graph.Gradient(sum(graph.Square(y)), x)[0]
			z := param(g, "z", 2, 8, 8, 4)
			return []*graph.Node{a, graph.Gradient(sum(graph.Mul(a, z)), x)[0]}
		}},
	}
	dev := open(t, device.Config{Plugin: "go"})
	for _, c := range cases {
		if cost, err := dev.Cost("test "+c.name, c.draw); err != nil || cost.FLOPs != c.want {
			t.Errorf("%s: %d operations, want %d (error %v)", c.name, cost.FLOPs, c.want, err)
		}
	}
}

// TestWorkAddsUpByKind: every run counts under the first word of its program's key, and an executable that the cache
// already has is known to the count as well.
func TestWorkAddsUpByKind(t *testing.T) {
	dev := open(t, device.Config{Plugin: "go"})
	square := func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4, 4))
		return []*graph.Node{graph.Dot(x, x)}
	}
	x := upload(t, dev, make([]float32, 16), 4, 4)
	for _, key := range []string{"square 4", "square 4", "other 4"} {
		p := program(t, dev, key, square)
		if p.FLOPs() != 2*4*4*4 {
			t.Errorf("%s has %d operations", key, p.FLOPs())
		}
		out, err := p.Run(t.Context(), device.Use(x))
		if err != nil {
			t.Fatal(err)
		}
		out[0].Release()
	}
	work := dev.Work()
	if len(work) != 2 || work["square"].Runs != 2 || work["square"].FLOPs != 2*128 || work["other"].FLOPs != 128 ||
		!(work["square"].Seconds > 0) {
		t.Errorf("work %+v", work)
	}
}
