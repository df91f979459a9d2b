package device_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// A step of training in small: a donated state, a loop that XLA vectorises, two outputs.
func momentum(g *graph.Graph) []*graph.Node {
	state := graph.Parameter(g, "state", shapes.Make(dtypes.Float32, 64, 64))
	batch := graph.Parameter(g, "batch", shapes.Make(dtypes.Float32, 64, 64))
	next := graph.Add(graph.MulScalar(state, 0.9), graph.Tanh(graph.Dot(state, batch)))
	return []*graph.Node{next, graph.ReduceAllSum(graph.Square(next))}
}

// runMomentum opens a device whose cache on disk is dir and takes three steps.
func runMomentum(t *testing.T, dir string) (state []float32, stats device.Stats) {
	t.Helper()
	dev := open(t, device.Config{ProgramCache: dir})
	values := make([]float32, 64*64)
	for i := range values {
		values[i] = float32(i%17)/17 - 0.5
	}
	p := program(t, dev, "momentum", momentum)
	batch, current := upload(t, dev, values, 64, 64), upload(t, dev, values, 64, 64)
	for range 3 {
		out, err := p.Run(t.Context(), device.Donate(current), device.Use(batch))
		if err != nil {
			t.Fatal(err)
		}
		out[1].Release()
		current = out[0]
	}
	return read[float32](t, current), dev.Stats()
}

func TestProgramsAreKeptOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "programs")
	want, stats := runMomentum(t, dir)
	if dev := open(t, device.Config{}); dev.Name() == "go" {
		t.Fatal("this test needs an XLA plugin; run `make build`")
	}
	if stats.Compiled != 1 || stats.FromDisk != 0 {
		t.Fatalf("first start: %+v", stats)
	}
	again := func(what string, fromDisk int64) {
		t.Helper()
		got, stats := runMomentum(t, dir)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the results differ", what)
		}
		if stats.Compiled != 1 || stats.FromDisk != fromDisk {
			t.Errorf("%s: %+v, want %d program from disk", what, stats, fromDisk)
		}
	}
	again("second start", 1)
	t.Setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true")
	again("other compiler flags", 0)
}

func TestProgramsNeedNotBeKept(t *testing.T) {
	for range 2 {
		if _, stats := runMomentum(t, "off"); stats.FromDisk != 0 {
			t.Errorf("%+v with the cache off", stats)
		}
	}
}
