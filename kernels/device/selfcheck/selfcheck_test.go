package selfcheck

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

func TestRun(t *testing.T) {
	for _, dev := range []*device.Device{devicetest.Open(t), devicetest.PureGo(t)} {
		results := Run(t.Context(), dev)
		if len(results) != len(checks) {
			t.Errorf("%s: %d results", dev.Name(), len(results))
		}
		for _, r := range results {
			if r.Err != nil {
				t.Errorf("%s: %s: %v", dev.Name(), r.Name, r.Err)
			}
		}
	}
}

// The checks can fail.
func TestDefectsAreNoticed(t *testing.T) {
	dev, reference := devicetest.Open(t), devicetest.PureGo(t)
	for name, build := range map[string]func(in []*graph.Node) *graph.Node{
		"a deviation": func(in []*graph.Node) *graph.Node {
			if in[0].DType() == dtypes.Float32 {
				return graph.MulScalar(in[0], 1.001)
			}
			return in[0]
		},
		"NaN": func(in []*graph.Node) *graph.Node { return graph.Sqrt(graph.AddScalar(in[0], -9)) },
	} {
		c := check{name: name, sizes: [][]int{{3}}, build: build}
		if _, err := c.run(t.Context(), dev, reference); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	unmatched := check{places: 1}
	before := dev.Stats()
	before.Compiled-- // as if a program had been compiled, in which no rule has found anything
	if err := unmatched.rewritten(dev, before); dev.Name() == "xla:cpu" && err == nil {
		t.Error("a program that is not rewritten passed")
	}
}
