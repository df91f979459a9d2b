//go:build linux

package device_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// residentMiB reads the process's resident memory.
func residentMiB(t *testing.T) float64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var total, resident int
	if _, err := fmt.Sscan(string(raw), &total, &resident); err != nil {
		t.Fatal(err)
	}
	return float64(resident*os.Getpagesize()) / (1 << 20)
}

// A training loop donates its state and uploads a batch in every step. 500 steps of 4 MiB each would grow to 2 GiB if
// one buffer in a step were lost.
func TestMemoryStaysFlatOverDonatedSteps(t *testing.T) {
	dev := devicetest.Open(t)
	const n = 1 << 20
	shape := shapes.Make(dtypes.Float32, n)
	step := program(t, dev, "step", func(g *graph.Graph) []*graph.Node {
		state, batch := graph.Parameter(g, "state", shape), graph.Parameter(g, "batch", shapes.Make(dtypes.Float32))
		next := graph.Add(state, batch)
		return []*graph.Node{next, graph.ReduceAllMax(next)}
	})
	state := upload(t, dev, make([]float32, n), n)
	peak, start := make([]float32, 1), 0.0
	const steps = 500
	for i := range steps {
		batch, err := dev.Upload([]float32{1})
		if err != nil {
			t.Fatal(err)
		}
		out, err := step.Run(t.Context(), device.Donate(state), device.Use(batch))
		if err != nil {
			t.Fatal(err)
		}
		state = out[0]
		if err := out[1].Read(peak); err != nil {
			t.Fatal(err)
		}
		out[1].Release()
		batch.Release()
		if i == 100 { // the allocator has settled
			runtime.GC()
			start = residentMiB(t)
		}
	}
	if peak[0] != steps {
		t.Errorf("state is %v after %d steps", peak[0], steps)
	}
	state.Release()
	runtime.GC()
	if grown := residentMiB(t) - start; grown > 100 {
		t.Errorf("resident memory grew by %.0f MiB over %d steps", grown, steps-100)
	}
}
