package autodiff_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

// TestGroupedConvolutionIsRefused: a rule that is wrong to second order would be worse than none.
func TestGroupedConvolutionIsRefused(t *testing.T) {
	autodiff.Install()
	_, err := devicetest.Open(t).Program(t.Context(), t.Name(), func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, 3, 3, 4))
		w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 3, 3, 2, 4))
		y := graph.ConvGeneral(x, w, nhwc, []int{1, 1}, [][2]int{{1, 1}, {1, 1}}, []int{1, 1}, []int{1, 1}, 2, 1)
		return graph.Gradient(graph.ReduceAllSum(y), x)
	})
	if err == nil || !strings.Contains(err.Error(), "grouped") {
		t.Errorf("got error %v", err)
	}
}
