package device_test

import (
	"errors"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// TestMemoryFollowsTheBuffers: estimates of graphs small enough to follow by hand, in units of one 16×16 matrix.
func TestMemoryFollowsTheBuffers(t *testing.T) {
	const unit, unfused = 16 * 16 * 4, 1.25
	matrix := func(g *graph.Graph, name string) *graph.Node {
		return graph.Parameter(g, name, shapes.Make(dtypes.Float32, 16, 16))
	}
	dev := open(t, device.Config{Plugin: "go"})
	for _, c := range []struct {
		name                          string
		arguments, outputs, temporary int64
		draw                          drawing
	}{
		{"a result alone", 2, 1, 0, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Dot(matrix(g, "a"), matrix(g, "b"))}
		}},
		{"a chain needs two at a time", 1, 1, 2, func(g *graph.Graph) []*graph.Node {
			a := matrix(g, "a")
			x := a
			for range 6 {
				x = graph.Dot(x, a)
			}
			return []*graph.Node{x}
		}},
		{"what is read in the end is kept", 1, 1, 3, func(g *graph.Graph) []*graph.Node {
			a := matrix(g, "a")
			first := graph.Dot(a, a)
			x := first
			for range 4 {
				x = graph.Dot(x, a)
			}
			return []*graph.Node{graph.Add(x, first)}
		}},
		{"branches go side by side", 1, 1, 3, func(g *graph.Graph) []*graph.Node {
			a := matrix(g, "a")
			branch := func() *graph.Node { return graph.Dot(graph.Dot(graph.Dot(a, a), a), a) }
			return []*graph.Node{graph.Add(branch(), branch())}
		}},
		{"elementwise chains are made where they are read", 1, 1, 1, func(g *graph.Graph) []*graph.Node {
			a := matrix(g, "a")
			x := graph.Dot(a, a)
			for range 4 {
				x = graph.Tanh(x)
			}
			return []*graph.Node{x}
		}},
	} {
		cost, err := dev.Cost("test", c.draw)
		if err != nil {
			t.Fatal(err)
		}
		want := device.Memory{
			Arguments: c.arguments * unit, Outputs: c.outputs * unit,
			Temporary: int64(unfused * float64(c.temporary*unit)),
		}
		if cost.Memory != want {
			t.Errorf("%s: %+v, want %+v", c.name, cost.Memory, want)
		}
	}
}

// TestMemoryIsCheckedBeforeCompiling: what does not fit beside the buffers that are held is refused with both numbers,
// and what does fit is not.
func TestMemoryIsCheckedBeforeCompiling(t *testing.T) {
	dev := open(t, device.Config{Plugin: "go", MemoryLimit: 5 << 10})
	square := func(n int) drawing {
		return func(g *graph.Graph) []*graph.Node {
			a := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, n, n))
			return []*graph.Node{graph.Dot(a, a)}
		}
	}
	program(t, dev, "square 32", square(32)) // 4 KiB of outputs
	held := upload(t, dev, make([]float32, 512), 512)
	_, err := dev.Program(t.Context(), "square 30", square(30))
	var short *device.MemoryError
	if !errors.As(err, &short) || short.Needed != 30*30*4 || short.Available != 3<<10 {
		t.Errorf("with 2 KiB held of 5: %v", err)
	}
	held.Release()
	program(t, dev, "square 30", square(30))
	if n := dev.Stats().Compiled; n != 2 {
		t.Errorf("%d programs compiled", n)
	}
}
