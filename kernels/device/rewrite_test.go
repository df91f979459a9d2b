//go:build cgo && linux

package device_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/devicetest"
)

// The form that programs are given for XLA on the host computes what they say: a group norm of images that are large
// enough for it, and its gradient, agree with the pure-Go device, which is given the graph itself.
func TestProgramsKeepTheirMeaning(t *testing.T) {
	const (
		batch, side, channels, groups = 2, 32, 16, 4
		size                          = channels / groups
		values                        = batch * side * side * channels
	)
	norm := func(x *graph.Node) *graph.Node {
		mean := func(v *graph.Node) *graph.Node {
			v = graph.ReduceSum(graph.Reshape(graph.ReduceSum(v, 1, 2), batch, groups, size), 2)
			v = graph.BroadcastToDims(graph.Reshape(graph.MulScalar(v, 1.0/(side*side*size)), batch, groups, 1), batch, groups,
				size)
			return graph.Reshape(v, batch, 1, 1, channels)
		}
		centred := graph.Sub(x, mean(x))
		return graph.Div(centred, graph.Sqrt(graph.AddScalar(mean(graph.Square(centred)), 1e-6)))
	}
	build := func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, batch, side, side, channels))
		y := norm(x)
		return append(graph.Gradient(graph.ReduceAllSum(graph.Mul(y, graph.Exp(y))), x), y)
	}
	x := make([]float32, values)
	for i := range x {
		x[i] = float32(math.Sin(float64(i*i%1009)) + float64(i%channels)/4)
	}
	results := map[string][2][]float32{}
	for name, dev := range map[string]*device.Device{"xla": devicetest.Open(t), "go": devicetest.PureGo(t)} {
		p := program(t, dev, "norm", build)
		out, err := p.Run(t.Context(), device.Use(upload(t, dev, x, batch, side, side, channels)))
		if err != nil {
			t.Fatal(err)
		}
		var got [2][]float32
		for i, b := range out {
			got[i] = make([]float32, values)
			if err := b.Read(got[i]); err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		results[name] = got
	}
	for i, name := range []string{"gradient", "norm"} {
		want, got := results["go"][i], results["xla"][i]
		var most, worst float64
		for j := range want {
			most = max(most, math.Abs(float64(want[j])))
			worst = max(worst, math.Abs(float64(want[j]-got[j])))
		}
		if most < 0.1 || worst > 1e-5*most {
			t.Errorf("%s: differs by up to %.3g, the largest entry is %.3g", name, worst, most)
		}
	}
}

// The text that the graph library makes of a sum is one that the rule for sums knows: a quarter of the terms is held.
func TestSumsAreTakenByParts(t *testing.T) {
	dev := devicetest.Open(t)
	p := program(t, dev, "squares", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 8, 32, 32, 64))
		return []*graph.Node{graph.ReduceSum(graph.Square(x), 1, 2)}
	})
	const quarter = 8 * 32 * 32 * 64 / 4 * 4
	if m, ok, err := p.Memory(t.Context()); err != nil || !ok || m.Temporary < quarter || m.Temporary >= 2*quarter {
		t.Errorf("the sum holds %d bytes (%v, %v), want %d and little more", m.Temporary, ok, err, quarter)
	}
}
