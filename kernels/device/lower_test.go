package device_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// TestLowerWritesWhatCUDAWouldGet: products are exact unless the program allows TF32, donors are marked, and nothing is
// written in the form for processors. A program that is not taken is compiled and runs.
func TestLowerWritesWhatCUDAWouldGet(t *testing.T) {
	var taken []device.Lowered
	dev := open(t, device.Config{Plugin: "cpu", Lower: func(l device.Lowered) bool {
		taken = append(taken, l)
		return strings.HasPrefix(l.Key, "step")
	}})
	square := func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, device.Donated("x"), shapes.Make(dtypes.Float32, 2, 2))
		return []*graph.Node{graph.Dot(x, x)}
	}
	for _, c := range []struct {
		key       string
		options   []device.ProgramOption
		module    string
		precision string
	}{
		{"step exact", nil, "module @main ", "HIGHEST"},
		{"step tf32", []device.ProgramOption{device.AllowTF32}, "module @tf32 ", "DEFAULT"},
	} {
		taken = nil
		if _, err := dev.Program(t.Context(), c.key, square, c.options...); !errors.Is(err, device.ErrLowered) {
			t.Fatalf("%s: error %v, want ErrLowered", c.key, err)
		}
		if len(taken) != 1 || taken[0].Key != c.key {
			t.Fatalf("%s: %d programs were written", c.key, len(taken))
		}
		l := taken[0]
		for _, want := range []string{c.module, "#stablehlo<precision " + c.precision + ">", "jax.buffer_donor = true"} {
			if !strings.Contains(string(l.Text), want) {
				t.Errorf("%s: the text lacks %q:\n%s", c.key, want, l.Text)
			}
		}
		if l.FLOPs != 2*2*2*2 || l.Memory.Arguments != 16 || l.Memory.Aliased != 16 {
			t.Errorf("%s: %d FLOPs, memory %+v", c.key, l.FLOPs, l.Memory)
		}
	}
	p := program(t, dev, "other", square)
	out, err := p.Run(t.Context(), device.Donate(upload(t, dev, []float32{1, 2, 3, 4}, 2, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if got := read[float32](t, out[0]); !slices.Equal(got, []float32{7, 10, 15, 22}) {
		t.Errorf("the square is %v", got)
	}
}

// TestWeightsAreCutWhenTheyAreReadOnCUDA: of 8 weights in one vector, one is held at a time beside what goes through;
// processors hold all of them from the start.
func TestWeightsAreCutWhenTheyAreReadOnCUDA(t *testing.T) {
	const n, width = 8, 64
	var onCUDA device.Memory
	chain := func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, width))
		weights := graph.Parameter(g, "weights", shapes.Make(dtypes.Float32, n*width*width))
		for i := range n {
			cut := graph.Slice(weights, graph.AxisRange(i*width*width, (i+1)*width*width))
			x = graph.Dot(x, graph.Reshape(cut, width, width))
		}
		return []*graph.Node{x}
	}
	dev := open(t, device.Config{Plugin: "cpu", Lower: func(l device.Lowered) bool {
		onCUDA = l.Memory
		return true
	}})
	if _, err := dev.Program(t.Context(), "chain", chain); !errors.Is(err, device.ErrLowered) {
		t.Fatal(err)
	}
	here, err := dev.Cost("chain", chain)
	if err != nil {
		t.Fatal(err)
	}
	const weight, vector = 4 * width * width, 4 * width
	if want := int64(weight+2*vector) * 995 / 1000; onCUDA.Temporary != want {
		t.Errorf("on CUDA %d bytes, want %d", onCUDA.Temporary, want)
	}
	if want := int64(n*weight+vector) * 5 / 4; here.Memory.Temporary != want {
		t.Errorf("on a processor %d bytes, want %d", here.Memory.Temporary, want)
	}
}
