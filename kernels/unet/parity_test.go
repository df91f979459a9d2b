package unet_test

import (
	"encoding/json"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

type node = graph.Node

// The tests in this file compare networks with values that an independent implementation computed in float64.

// TestParityFloat64 compares everything in float64, to rounding. It runs on the pure-Go backend, which needs no
// compilation.
func TestParityFloat64(t *testing.T) {
	dev := devicetest.PureGo(t)
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			p := newParity(t, dev, "networks/"+name, dtypes.Float64)
			p.derivatives(t)
			p.outputs(t, "F_no_augment", "D", "D_labels_none")
		})
	}
}

// TestParityFloat32 compares in the type and on the backend of daily use, to ten times what PyTorch's float32 gives.
// Package kernels does so for the first family, derivatives included.
func TestParityFloat32(t *testing.T) {
	dev := devicetest.Open(t)
	for _, name := range families[1:] {
		t.Run(name, func(t *testing.T) {
			newParity(t, dev, "networks/"+name, dtypes.Float32).outputs(t, "D")
		})
	}
}

// parity is one network of the fixtures in one float type.
type parity struct {
	*fixtures.Case
	net    *unet.Net
	params []nn.Param
	values [][]float32
	dtype  dtypes.DType
	dev    *device.Device
	tol    map[string]json.RawMessage
}

func newParity(t *testing.T, dev *device.Device, name string, dtype dtypes.DType) *parity {
	t.Helper()
	p := &parity{Case: fixtures.Load(t, name), dtype: dtype, dev: dev}
	p.net = fixtureNet(t, p.Case)
	p.params = p.net.Params()
	var state []nn.Tensor
	for _, w := range p.File("weights.safetensors").Tensors {
		v, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		state = append(state, nn.Tensor{Name: w.Name, Shape: w.Shape, Data: v})
	}
	values, err := p.net.Load(state)
	if err != nil {
		t.Fatal(err)
	}
	p.values = values
	p.JSON("tolerances", &p.tol)
	return p
}

// fixtureNet reads a fixture's configuration, which is EDM's without the parts of the preconditioner.
func fixtureNet(t *testing.T, c *fixtures.Case) *unet.Net {
	t.Helper()
	net, err := unet.Parse(c.Raw("config"))
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// check compares in the test's type: the fixture's own tolerance in float32, and rounding alone in float64.
func (p *parity) check(t *testing.T, what, tolerance string, got, want []float64) {
	t.Helper()
	var bound struct{ Recommended fixtures.Tolerance }
	if err := json.Unmarshal(p.tol[tolerance], &bound); err != nil {
		t.Fatal(err)
	}
	tol := bound.Recommended
	if p.dtype == dtypes.Float64 {
		tol = fixtures.Tolerance{RelMax: 1e-9, RelL2: 1e-9}
	}
	t.Logf("%s: rel_max %.2g, rel_l2 %.2g", what, fixtures.RelMax(got, want), fixtures.RelL2(got, want))
	fixtures.Check(t, what, got, want, tol)
}

// inputs are the network's parameters and the named tensors of the case as graph parameters.
type inputs struct {
	scope  *nn.Scope
	params []*node
	at     map[string]*node
}

// run compiles and runs a function of the parameters and the named tensors.
func (p *parity) run(t *testing.T, key string, names []string, f func(in inputs) []*node) [][]float64 {
	t.Helper()
	var given []devicetest.Input
	for i, q := range p.params {
		given = append(given, devicetest.In(p.dtype, fixtures.Widen(q.ToDevice(p.values[i])), q.DeviceShape()...))
	}
	for _, name := range names {
		v := p.F64(name)
		if s := p.Shape(name); len(s) == 4 {
			v = fixtures.NHWC(v, s[0], s[1], s[2], s[3])
		}
		given = append(given, devicetest.In(p.dtype, v, p.dims(name)...))
	}
	return devicetest.Compute(t, p.dev, key, func(nodes []*node) []*node {
		in := inputs{params: nodes[:len(p.params)], at: map[string]*node{}}
		for i, name := range names {
			in.at[name] = nodes[len(p.params)+i]
		}
		in.scope = nn.NewScope(p.params, in.params)
		return f(in)
	}, given...)
}

// dims is the shape of a tensor of the case on the device.
func (p *parity) dims(name string) []int {
	s := p.Shape(name)
	if len(s) == 4 {
		return []int{s[0], s[2], s[3], s[1]}
	}
	return s
}

func (p *parity) image(name string, v []float64) (got, want []float64) {
	s := p.Shape(name)
	return fixtures.NCHW(v, s[0], s[2], s[3], s[1]), p.F64(name)
}

// derivatives checks the output F, a = Jᵀw, h = ∇ₓ⟨a, z⟩ by reverse mode over reverse mode, and the gradient of ⟨w, F⟩
// by every parameter.
func (p *parity) derivatives(t *testing.T) {
	t.Helper()
	names := []string{"x", "noise_labels", "class_labels", "w", "z"}
	if p.Has("augment_labels") {
		names = append(names, "augment_labels")
	}
	var trained []nn.Param
	out := p.run(t, "derivatives", names, func(in inputs) []*node {
		f := p.net.Apply(in.scope, in.at["x"], in.at["noise_labels"], nil, in.at["class_labels"], in.at["augment_labels"])
		var wrt []*node
		trained = nil
		for i, q := range p.params {
			if !q.Frozen {
				wrt, trained = append(wrt, in.params[i]), append(trained, q)
			}
		}
		loss := graph.ReduceAllSum(graph.Mul(f, in.at["w"]))
		first := graph.Gradient(loss, append(wrt, in.at["x"])...)
		a := first[len(wrt)]
		h := graph.Gradient(graph.ReduceAllSum(graph.Mul(a, in.at["z"])), in.at["x"])[0]
		return append([]*node{f, a, h}, first[:len(wrt)]...)
	})
	for i, name := range []string{"F", "a", "h"} {
		got, want := p.image(name, out[i])
		p.check(t, name, name, got, want)
	}

	// Gradients: norm and a few entries of every parameter, and all entries where the case has them.
	var order []string
	p.JSON("param_names", &order)
	norms, samples, index := p.F64("grad_norm"), p.F64("grad_sample"), p.I64("grad_index")
	per := len(samples) / len(order)
	var got, want, gotAll, wantAll []float64
	if len(trained) != len(order) {
		t.Fatalf("%d trained parameters, want %d", len(trained), len(order))
	}
	for i, q := range trained {
		if q.Name != order[i] {
			t.Fatalf("parameter %d is %s, want %s", i, q.Name, order[i])
		}
		g := torch(q, out[3+i])
		got = append(got, norm(g))
		want = append(want, norms[i])
		for k := range per {
			gotAll = append(gotAll, g[index[i*per+k]]/norms[i])
			wantAll = append(wantAll, samples[i*per+k]/norms[i])
		}
	}
	p.check(t, "gradient norms", "grad_norm", got, want)
	p.check(t, "gradient entries", "param_gradient_all", gotAll, wantAll)
}

// outputs checks F without augmentation, and D with and without class labels.
func (p *parity) outputs(t *testing.T, which ...string) {
	t.Helper()
	out := p.run(t, "outputs", []string{"x", "noise_labels", "class_labels", "y", "sigma"}, func(in inputs) []*node {
		denoise := func(label *node) *node {
			sigma := in.at["sigma"]
			s := graph.Reshape(sigma, -1, 1, 1, 1)
			v := graph.AddScalar(graph.Square(s), 0.25)
			y := in.at["y"]
			f := p.net.Apply(in.scope, graph.Div(y, graph.Sqrt(v)), graph.MulScalar(graph.Log(sigma), 0.25), nil, label, nil)
			return graph.Add(graph.Div(graph.MulScalar(y, 0.25), v), graph.Mul(graph.Div(graph.MulScalar(s, 0.5), graph.Sqrt(v)),
				f))
		}
		var out []*node
		for _, name := range which {
			switch name {
			case "F_no_augment":
				out = append(out, p.net.Apply(in.scope, in.at["x"], in.at["noise_labels"], nil, in.at["class_labels"], nil))
			case "D":
				out = append(out, denoise(in.at["class_labels"]))
			case "D_labels_none":
				out = append(out, denoise(nil))
			}
		}
		return out
	})
	for i, name := range which {
		got, want := p.image(name, out[i])
		p.check(t, name, name[:1], got, want)
	}
}

// torch reorders device values to PyTorch's layout in float64.
func torch(q nn.Param, v []float64) []float64 {
	if len(q.Shape) != 4 {
		return v
	}
	out := make([]float64, len(v))
	o, n, k := q.Shape[0], q.Shape[1], q.Shape[2]*q.Shape[3]
	for a := range o {
		for b := range n {
			for c := range k {
				out[(a*n+b)*k+c] = v[(c*n+b)*o+a]
			}
		}
	}
	return out
}

func norm(v []float64) float64 { return floats.Norm(v, 2) }
