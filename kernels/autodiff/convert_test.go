package autodiff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

// TestConversionBetweenTypes holds x³ computed in bfloat16 within a float32 graph. Its derivatives 3x², 6xz and 6z² are
// whole numbers that bfloat16 holds exactly, and are of x's type at every order.
func TestConversionBetweenTypes(t *testing.T) {
	autodiff.Install()
	x, z := []float32{1, -2, 3, 4}, []float32{2, 3, -1, 1}
	want := [][]float64{{3, 12, 27, 48}, {12, -36, -18, 24}, {24, 54, 6, 6}}
	got := devicetest.Compute(t, devicetest.Fast(t), "", func(in []*node) []*node {
		x := in[0]
		y := graph.ConvertDType(x, dtypes.BFloat16)
		f := graph.ReduceAllSum(graph.ConvertDType(graph.Mul(y, graph.Square(y)), dtypes.Float32))
		var out []*node
		for range want {
			d := graph.Gradient(f, x)[0]
			if d.DType() != dtypes.Float32 {
				t.Errorf("a derivative is of type %s", d.DType())
			}
			out = append(out, d)
			f = graph.ReduceAllSum(graph.Mul(d, graph.Const(x.Graph(), z)))
		}
		return out
	}, devicetest.Input{Flat: x, Dims: []int{4}})
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("derivative %d is %v, want %v", i+1, got[i], want[i])
		}
	}
}

// TestGroupedConvolutionIsRefused: a rule that is wrong to second order would be worse than none.
func TestGroupedConvolutionIsRefused(t *testing.T) {
	autodiff.Install()
	_, err := devicetest.PureGo(t).Program(t.Context(), t.Name(), func(g *graph.Graph) []*node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, 3, 3, 4))
		w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 3, 3, 2, 4))
		y := graph.ConvGeneral(x, w, nhwc, []int{1, 1}, [][2]int{{1, 1}, {1, 1}}, []int{1, 1}, []int{1, 1}, 2, 1)
		return graph.Gradient(graph.ReduceAllSum(y), x)
	})
	if err == nil || !strings.Contains(err.Error(), "grouped") {
		t.Errorf("got error %v", err)
	}
}
