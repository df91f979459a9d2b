package autodiff_test

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// TestConversionBetweenTypes holds x³ computed in bfloat16 within a float32 graph. Its
// derivatives 3x², 6xz and 6z² are whole numbers that bfloat16 holds exactly, and are of
// x's type at every order.
func TestConversionBetweenTypes(t *testing.T) {
	autodiff.Install()
	x, z := []float32{1, -2, 3, 4}, []float32{2, 3, -1, 1}
	want := [][]float32{{3, 12, 27, 48}, {12, -36, -18, 24}, {24, 54, 6, 6}}
	for _, dev := range devices(t) {
		p, err := dev.Program(t.Context(), t.Name(), func(g *graph.Graph) []*node {
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4))
			y := graph.ConvertDType(x, dtypes.BFloat16)
			f := graph.ReduceAllSum(graph.ConvertDType(graph.Mul(y, graph.Square(y)), dtypes.Float32))
			var out []*node
			for range want {
				d := graph.Gradient(f, x)[0]
				out = append(out, d)
				f = graph.ReduceAllSum(graph.Mul(d, graph.Const(g, z)))
			}
			return out
		})
		if err != nil {
			t.Fatal(err)
		}
		in, err := dev.Upload(x, 4)
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Run(t.Context(), device.Use(in))
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range out {
			got := make([]float32, 4)
			if err := b.Read(got); err != nil {
				t.Fatalf("%s: derivative %d: %v", dev.Name(), i+1, err)
			}
			if !slices.Equal(got, want[i]) {
				t.Errorf("%s: derivative %d is %v, want %v", dev.Name(), i+1, got, want[i])
			}
		}
	}
}
