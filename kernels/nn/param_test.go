package nn_test

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

func TestLayouts(t *testing.T) {
	p := nn.Param{Name: "k", Shape: []int{2, 3, 1, 2}} // [out, in, H, W]
	torch := []float32{
		0, 1, 10, 11, 20, 21,
		100, 101, 110, 111, 120, 121,
	}
	want := []float32{ // [H, W, in, out]
		0, 100, 10, 110, 20, 120,
		1, 101, 11, 111, 21, 121,
	}
	device := p.ToDevice(torch)
	if !slices.Equal(p.DeviceShape(), []int{1, 2, 3, 2}) || !slices.Equal(device, want) {
		t.Errorf("shape %v, values %v", p.DeviceShape(), device)
	}
	if back := p.FromDevice(device); !slices.Equal(back, torch) {
		t.Errorf("back: %v", back)
	}

	m := nn.Param{Name: "m", Shape: []int{2, 2}}
	v := []float32{1, 2, 3, 4}
	moved := m.ToDevice(v)
	if !slices.Equal(moved, v) || !slices.Equal(m.DeviceShape(), m.Shape) {
		t.Errorf("a matrix became %v of shape %v", moved, m.DeviceShape())
	}
	if moved[0] = 9; v[0] != 1 {
		t.Error("ToDevice shares memory with its argument")
	}
}

// TestFrozen: a frozen parameter takes part, and its gradient is zero.
func TestFrozen(t *testing.T) {
	params := []nn.Param{{Name: "a", Shape: []int{1}, Frozen: true}, {Name: "b", Shape: []int{1}}}
	out := devicetest.Compute(t, devicetest.PureGo(t), "", func(in []*nn.Node) []*nn.Node {
		s := nn.NewScope(params, in)
		y := graph.ReduceAllSum(graph.Mul(s.Param("a"), s.Param("b")))
		return append(graph.Gradient(y, in...), y)
	}, devicetest.Input{Flat: []float64{3}, Dims: []int{1}}, devicetest.Input{Flat: []float64{5}, Dims: []int{1}})
	if got := slices.Concat(out...); !slices.Equal(got, []float64{0, 3, 15}) {
		t.Errorf("gradients and product are %v", got)
	}
}
