package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/internal/gradcheck"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// The tests in this file compare every layer with its definition, evaluated in
// float64 by plain loops, and its first three derivatives with differences.

// layer is what all layers have in common.
type layer interface {
	Params() []nn.Param
	Apply(s *nn.Scope, x *nn.Node) *nn.Node
}

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

func TestLayers(t *testing.T) {
	dev := devicetest.PureGo(t)
	for _, c := range []struct {
		name    string
		layer   layer
		x       image
		defined func(x image, w tensors) image
	}{
		{
			"conv 3x3",
			nn.Conv2D{Name: "l", In: 3, Out: 2, Kernel: 3},
			newImage(2, 4, 3, 3),
			func(x image, w tensors) image { return convolution(x, w, 2, 3) },
		},
		{
			"conv 1x1",
			nn.Conv2D{Name: "l", In: 3, Out: 2, Kernel: 1},
			newImage(2, 2, 3, 3),
			func(x image, w tensors) image { return convolution(x, w, 2, 1) },
		},
		{
			"group norm",
			nn.GroupNorm{Name: "l", Channels: 12, Eps: 0.1},
			newImage(2, 3, 2, 12),
			func(x image, w tensors) image { return groupNorm(x, w, 3, 0.1) },
		},
		{
			"attention",
			nn.Attention{Name: "l", Channels: 4, Heads: 2},
			newImage(2, 2, 3, 4),
			func(x image, w tensors) image { return attention(x, w, 2) },
		},
		{
			"attention, one head",
			nn.Attention{Name: "l", Channels: 3, Heads: 1},
			newImage(1, 2, 2, 3),
			func(x image, w tensors) image { return attention(x, w, 1) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			x := c.x
			x.v = random(rng, len(x.v))
			params, values := c.layer.Params(), tensors{}
			sizes := [][]int{{x.b, x.h, x.w, x.c}}
			for _, p := range params {
				values[p.Name] = random(rng, p.Size())
				sizes = append(sizes, p.DeviceShape())
			}
			equal(t, c.name, eval(t, dev, x, params, values, c.layer.Apply), c.defined(x, values).v)
			gradcheck.Check(t, dev, c.name, sizes, func(in []*nn.Node) *nn.Node {
				return c.layer.Apply(nn.NewScope(params, in[1:]), in[0])
			})
		})
	}
}

func convolution(x image, w tensors, out, k int) image {
	return newImage(x.b, x.h, x.w, out).each(func(b, y, col, o int) float64 {
		sum := w["l.bias"][o]
		for i := range x.c {
			for dy := range k {
				for dx := range k {
					sum += x.at(b, y+dy-k/2, col+dx-k/2, i) * w["l.weight"][((o*x.c+i)*k+dy)*k+dx]
				}
			}
		}
		return sum
	})
}

func groupNorm(x image, w tensors, groups int, eps float64) image {
	size := x.c / groups
	moment := func(b, g int, f func(v float64) float64) float64 {
		sum := 0.
		for p := range x.h * x.w {
			for c := range size {
				sum += f(x.v[(b*x.h*x.w+p)*x.c+g*size+c])
			}
		}
		return sum / float64(x.h*x.w*size)
	}
	return newImage(x.b, x.h, x.w, x.c).each(func(b, y, col, c int) float64 {
		mean := moment(b, c/size, func(v float64) float64 { return v })
		variance := moment(b, c/size, func(v float64) float64 { return (v - mean) * (v - mean) })
		return (x.at(b, y, col, c)-mean)/math.Sqrt(variance+eps)*w["l.weight"][c] + w["l.bias"][c]
	})
}

func attention(x image, w tensors, heads int) image {
	size, pixels := x.c/heads, x.h*x.w
	qkv := convolution(x, tensors{"l.weight": w["l.qkv.weight"], "l.bias": w["l.qkv.bias"]}, 3*x.c, 1)
	// part i of channel c of head h, at pixel p: channels are [head][channel][q, k, v].
	at := func(b, p, h, c, i int) float64 { return qkv.v[(b*pixels+p)*3*x.c+(h*size+c)*3+i] }
	y := newImage(x.b, x.h, x.w, x.c).each(func(b, row, col, c int) float64 {
		h, q := c/size, row*x.w+col
		var total, sum float64
		for k := range pixels {
			dot := 0.
			for j := range size {
				dot += at(b, q, h, j, 0) * at(b, k, h, j, 1)
			}
			e := math.Exp(dot / math.Sqrt(float64(size)))
			total += e
			sum += e * at(b, k, h, c%size, 2)
		}
		return sum / total
	})
	return convolution(y, tensors{"l.weight": w["l.proj.weight"], "l.bias": w["l.proj.bias"]}, x.c, 1)
}

func TestLinear(t *testing.T) {
	dev := devicetest.PureGo(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, l := range []nn.Linear{{Name: "l", In: 3, Out: 2}, {Name: "n", In: 3, Out: 2, NoBias: true}} {
		x := image{2, 1, 1, 3, random(rng, 6)}
		values := tensors{}
		sizes := [][]int{{2, 3}}
		for _, p := range l.Params() {
			values[p.Name] = random(rng, p.Size())
			sizes = append(sizes, p.DeviceShape())
		}
		bias, ok := values[l.Name+".bias"]
		if ok == l.NoBias {
			t.Fatalf("parameters %v", l.Params())
		}
		if l.NoBias {
			bias = []float64{0, 0}
		}
		want := convolution(x, tensors{"l.weight": values[l.Name+".weight"], "l.bias": bias}, 2, 1)
		t.Run(l.Name, func(t *testing.T) {
			got := eval(t, dev, x, l.Params(), values, func(s *nn.Scope, x *nn.Node) *nn.Node {
				return l.Apply(s, graph.Reshape(x, 2, 3))
			})
			equal(t, "linear", got, want.v)
			gradcheck.Check(t, dev, "linear"+l.Name, sizes, func(in []*nn.Node) *nn.Node {
				return l.Apply(nn.NewScope(l.Params(), in[1:]), in[0])
			})
		})
	}
}
