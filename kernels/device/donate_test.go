package device_test

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// An output may take over the memory of a parameter that says so. Who passes such a
// parameter with Use keeps it all the same.
func TestDonatedParameterGivesItsMemory(t *testing.T) {
	dev := open(t, device.Config{})
	p := program(t, dev, "donor", func(g *graph.Graph) []*graph.Node {
		state := graph.Parameter(g, device.Donated("state"), shapes.Make(dtypes.Float32, 3))
		return []*graph.Node{graph.MulScalar(state, 2)}
	})
	m, ok, err := p.Memory(t.Context())
	if err != nil || ok && m.Aliased != 3*4 {
		t.Errorf("%d bytes lie in donated memory, want 12; %v", m.Aliased, err)
	}
	state := upload(t, dev, []float32{1, 2, 3}, 3)
	out, err := p.Run(t.Context(), device.Use(state))
	if err != nil {
		t.Fatal(err)
	}
	if got := read[float32](t, state); !slices.Equal(got, []float32{1, 2, 3}) {
		t.Errorf("a state that was only used is %v", got)
	}
	for range 4 {
		if out, err = p.Run(t.Context(), device.Donate(out[0])); err != nil {
			t.Fatal(err)
		}
	}
	if got := read[float32](t, out[0]); !slices.Equal(got, []float32{32, 64, 96}) {
		t.Errorf("five doublings give %v", got)
	}
}
