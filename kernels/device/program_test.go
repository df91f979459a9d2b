package device_test

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/devicetest"
)

func TestRun(t *testing.T) {
	dev := devicetest.Open(t)
	t.Log(dev.Name(), dev.Report())
	p, err := dev.Program(t.Context(), "double f32[3]", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 3))
		return []*graph.Node{graph.MulScalar(x, 2)}
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := dev.Upload([]float32{1, 2, 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(t.Context(), device.Donate(in))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 3)
	if err := out[0].Read(got); err != nil {
		t.Fatal(err)
	}
	if got[0] != 2 || got[2] != 6 {
		t.Fatalf("got %v", got)
	}
	t.Log(p.Run(t.Context(), device.Use(in)))
}
