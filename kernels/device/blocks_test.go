//go:build cgo && linux

package device_test

import (
	"syscall"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/internal/blocks/blockstest"
)

// The memory that a program takes while it runs is kept for its next run: the kernel has no pages to clear and map
// again.
func TestTemporariesAreKept(t *testing.T) {
	dev := devicetest.Open(t)
	const n = 4096 // a temporary of n² values, 64 MiB
	p := program(t, dev, "outer", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, n))
		outer := graph.Exp(graph.Mul(graph.Reshape(x, n, 1), graph.Reshape(x, 1, n)))
		return []*graph.Node{graph.DotGeneral(outer, []int{1}, nil, x, []int{0}, nil)}
	})
	pages := int64(n * n * 4 / syscall.Getpagesize())
	if m, ok, err := p.Memory(t.Context()); err != nil || !ok || m.Temporary < n*n*4 {
		t.Fatalf("the program takes %d bytes while it runs (%v); the test wants %d at least", m.Temporary, err, n*n*4)
	}
	x := upload(t, dev, make([]float32, n), n)
	run := func() int64 {
		before := blockstest.Faults(t)
		out, err := p.Run(t.Context(), device.Use(x))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range out {
			b.Release()
		}
		return blockstest.Faults(t) - before
	}
	var total int64
	const runs = 20
	for range runs {
		total += run()
	}
	if total > 5*pages { // a run may begin before the last one's memory has been freed
		t.Errorf("%d faults in %d runs, whose temporaries have %d pages", total, runs, pages)
	}
}
