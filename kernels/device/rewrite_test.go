//go:build cgo && linux

package device_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// results returns what a program makes of its inputs.
func results(t *testing.T, p *device.Program, inputs ...*device.Buffer) (all [][]float32) {
	t.Helper()
	var args []device.Arg
	for _, in := range inputs {
		args = append(args, device.Use(in))
	}
	out, err := p.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range out {
		all = append(all, read[float32](t, b))
		b.Release()
	}
	return all
}

// agree compares results up to rounding, relative to the largest entry of each.
func agree(t *testing.T, names []string, got, want [][]float32) {
	t.Helper()
	for i, name := range names {
		var most, worst float64
		for j, v := range want[i] {
			most = max(most, math.Abs(float64(v)))
			worst = max(worst, math.Abs(float64(v-got[i][j])))
		}
		if most < 0.1 || worst > 1e-5*most {
			t.Errorf("%s: differs by up to %.3g, the largest entry is %.3g", name, worst, most)
		}
	}
}

// A convolution and its gradients by image and kernel agree with those of the pure-Go device, which sums over the
// kernel. From 128 channels on the gradient by the kernel is rewritten, too.
func TestConvolutionsAreRewritten(t *testing.T) {
	autodiff.Install()
	for name, test := range map[string]struct{ batch, height, width, in, out, places int }{
		"by Winograd's method": {2, 8, 10, 128, 192, 3},
		"without the kernel's": {2, 8, 8, 64, 64, 2},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(g *graph.Graph) []*graph.Node {
				x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, test.batch, test.height, test.width, test.in))
				w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 3, 3, test.in, test.out))
				y := nn.Convolve(x, w, 1)
				return append(graph.Gradient(graph.ReduceAllSum(graph.Mul(y, graph.Sin(y))), x, w), y)
			}
			x, w := waves(test.batch*test.height*test.width*test.in, 1), waves(9*test.in*test.out, .03)
			run := func(dev *device.Device) [][]float32 {
				return results(t, program(t, dev, name, build),
					upload(t, dev, x, test.batch, test.height, test.width, test.in), upload(t, dev, w, 3, 3, test.in, test.out))
			}
			dev := devicetest.Open(t)
			if dev.Name() == "xla:cuda" {
				test.places = 0
			}
			before := dev.Stats().Rewritten
			got, want := run(dev), run(devicetest.PureGo(t))
			if n := dev.Stats().Rewritten - before; int(n) != test.places {
				t.Errorf("%d places were rewritten, want %d", n, test.places)
			}
			agree(t, []string{"gradient by the image", "gradient by the kernel", "convolution"}, got, want)
		})
	}
}

// An image that is not a number, or infinite, leaves the one beside it alone.
func TestWinogradKeepsImagesApart(t *testing.T) {
	const side, channels = 8, 64
	dev := devicetest.Open(t)
	p := program(t, dev, "images", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2, side, side, channels))
		w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 3, 3, channels, channels))
		return []*graph.Node{nn.Convolve(x, w, 1)}
	})
	images, w := waves(2*side*side*channels, 1), upload(t, dev, waves(9*channels*channels, .04), 3, 3, channels, channels)
	run := func(first float64) []float32 {
		for i := range side * side * channels {
			images[i] = float32(first)
		}
		return results(t, p, upload(t, dev, images, 2, side, side, channels), w)[0][side*side*channels:]
	}
	want := run(0)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32} {
		if got := run(bad); !slices.Equal(got, want) {
			t.Errorf("beside an image of %g the other one changes", bad)
		}
	}
}

// waves returns n numbers of about the given size, none of which repeats its neighbours.
func waves(n int, size float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(size * math.Sin(float64(i*i%10007)))
	}
	return out
}
