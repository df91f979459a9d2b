package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// tensors are values by name, in PyTorch's layout.
type tensors map[string][]float64

// image is an array [B, H, W, C].
type image struct {
	b, h, w, c int
	v          []float64
}

func newImage(b, h, w, c int) image { return image{b, h, w, c, make([]float64, b*h*w*c)} }

// at returns an entry, zero outside the image.
func (m image) at(b, y, x, c int) float64 {
	if y < 0 || y >= m.h || x < 0 || x >= m.w {
		return 0
	}
	return m.v[((b*m.h+y)*m.w+x)*m.c+c]
}

func (m image) each(f func(b, y, x, c int) float64) image {
	for i := range m.v {
		c, p := i%m.c, i/m.c
		m.v[i] = f(p/m.w/m.h, p/m.w%m.h, p%m.w, c)
	}
	return m
}

func random(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// eval runs f of an image and some parameters in float64.
func eval(t *testing.T, dev *device.Device, x image, params []nn.Param, values tensors,
	f func(s *nn.Scope, x *nn.Node) *nn.Node,
) []float64 {
	t.Helper()
	inputs := []devicetest.Input{{Flat: x.v, Dims: []int{x.b, x.h, x.w, x.c}}}
	for _, p := range params {
		inputs = append(inputs, devicetest.Input{Flat: toDevice(p, values[p.Name]), Dims: p.DeviceShape()})
	}
	return devicetest.Compute(t, dev, "", func(in []*nn.Node) []*nn.Node {
		return []*nn.Node{f(nn.NewScope(params, in[1:]), in[0])}
	}, inputs...)[0]
}

// toDevice is Param.ToDevice for float64.
func toDevice(p nn.Param, v []float64) []float64 {
	index := make([]float32, len(v))
	for i := range index {
		index[i] = float32(i)
	}
	out := make([]float64, len(v))
	for i, from := range p.ToDevice(index) {
		out[i] = v[int(from)]
	}
	return out
}

func equal(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-12*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
