package device_test

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// An output takes over the memory of a parameter with a donor's name. An argument that is passed with Use keeps its
// memory.
func TestDonatedParameterGivesItsMemory(t *testing.T) {
	t.Parallel()
	dev := devicetest.Open(t)
	p := program(t, dev, "donor", func(g *graph.Graph) []*graph.Node {
		state := graph.Parameter(g, device.Donated("state"), shapes.Make(dtypes.Float32, 3))
		return []*graph.Node{graph.MulScalar(state, 2)}
	})
	state := upload(t, dev, []float32{1, 2, 3}, 3)
	out, err := p.Run(t.Context(), device.Use(state))
	if err != nil {
		t.Fatal(err)
	}
	if got := read[float32](t, state); !slices.Equal(got, []float32{1, 2, 3}) {
		t.Errorf("a state that was only used is %v", got)
	}
	memory := address(t, out[0])
	for range 4 {
		if out, err = p.Run(t.Context(), device.Donate(out[0])); err != nil {
			t.Fatal(err)
		}
		if now := address(t, out[0]); now != memory {
			t.Errorf("the output lies at %p, want the memory of the donated argument, %p", now, memory)
		}
	}
	if got := read[float32](t, out[0]); !slices.Equal(got, []float32{32, 64, 96}) {
		t.Errorf("five doublings give %v", got)
	}
}

// address returns where a buffer of float32 lies; nil if the host cannot see it.
func address(t *testing.T, b *device.Buffer) (at *float32) {
	t.Helper()
	if !b.Device().HostVisible() {
		return nil
	}
	if err := b.View(func(flat any) error {
		at = unsafe.SliceData(flat.([]float32))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return at
}
