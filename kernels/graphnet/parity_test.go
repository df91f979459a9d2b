package graphnet_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/graphnet"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

type node = graph.Node

// exported are the networks of testdata: modules of diffusers and others with random weights, as
// client_py/integration/network_fixtures.py has exported them, and what torch computes of them in float64.
var exported = []string{"unet", "unet-condition", "dit", "sit", "plain", "edm2", "volume"}

// TestParityFloat64 compares everything, to rounding.
func TestParityFloat64(t *testing.T) {
	dev := devicetest.PureGo(t)
	for _, name := range exported {
		t.Run(name, func(t *testing.T) { load(t, name).compare(t, dev, dtypes.Float64, 1e-10, true) })
	}
}

// TestParityFloat32 compares on the backend of daily use: everything of one network, of the others F, as their
// derivatives are the same operations and compile for long.
func TestParityFloat32(t *testing.T) {
	dev, names := devicetest.Open(t), exported
	if testing.Short() {
		names = []string{"unet", "sit"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { load(t, name).compare(t, dev, dtypes.Float32, 1e-5, name == "sit") })
	}
}

// sample is a network of testdata with its values.
type sample struct {
	name   string
	net    *graphnet.Net
	values [][]float32
	io     *safetensors.File
}

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t testing.TB, name string) *sample {
	t.Helper()
	s := &sample{name: name}
	var err error
	if s.net, err = graphnet.Parse(read(t, name, "config.json")); err != nil {
		t.Fatal(err)
	}
	if s.values, err = s.net.Load(state(t, read(t, name, "model.safetensors"))); err != nil {
		t.Fatal(err)
	}
	if s.io, err = safetensors.Decode(read(t, name, "io.safetensors")); err != nil {
		t.Fatal(err)
	}
	return s
}

func state(t testing.TB, b []byte) []nn.Tensor {
	t.Helper()
	f, err := safetensors.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	var out []nn.Tensor
	for i := range f.Tensors {
		v, err := f.Tensors[i].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, nn.Tensor{Name: f.Tensors[i].Name, Shape: f.Tensors[i].Shape, Data: v})
	}
	return out
}

// tensor returns a tensor of the fixture.
func (s *sample) tensor(t testing.TB, name string) ([]float64, []int) {
	t.Helper()
	x := s.io.Lookup(name)
	if x == nil {
		t.Fatalf("no tensor %s", name)
	}
	if x.DType == safetensors.F32 {
		v, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return fixtures.Widen(v), x.Shape
	}
	v, err := x.Float64s()
	if err != nil {
		t.Fatal(err)
	}
	return v, x.Shape
}

// onehot returns the classes of the fixture, [B, Labels]; nil without.
func (s *sample) onehot(t testing.TB) []float64 {
	t.Helper()
	labels := s.net.Spec().Labels
	if labels == 0 {
		return nil
	}
	numbers, err := s.io.Lookup("label").Int64s()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(numbers)*labels)
	for i, k := range numbers {
		if k >= 0 {
			out[i*labels+int(k)] = 1
		}
	}
	return out
}

// compare holds F to torch's and, where it is to differentiate, ∂f/∂x, its derivative along z, ∂f/∂noise and every
// ∂f/∂parameter.
func (s *sample) compare(t *testing.T, dev *device.Device, dtype dtypes.DType, tol float64,
	differentiate bool,
) {
	params := s.net.Params()
	var trained []int
	for i, p := range params {
		if s.io.Lookup("grad/"+p.Name) != nil {
			trained = append(trained, i)
		}
	}
	if len(trained) == 0 {
		t.Fatal("no gradients of parameters to compare with")
	}
	_, dims := s.tensor(t, "x")
	hot := s.onehot(t)
	var inputs []devicetest.Input
	for i, p := range params {
		inputs = append(inputs, devicetest.In(dtype, fixtures.Widen(p.ToDevice(s.values[i])), p.DeviceShape()...))
	}
	for _, name := range []string{"x", "u", "z", "noise"} {
		v, d := s.tensor(t, name)
		inputs = append(inputs, devicetest.In(dtype, v, d...))
	}
	if hot != nil {
		inputs = append(inputs, devicetest.In(dtype, hot, dims[0], s.net.Spec().Labels))
	}
	out := devicetest.Compute(t, dev, dtype.String(), func(in []*node) []*node {
		values, in := in[:len(params)], in[len(params):]
		x, u, z, noise := in[0], in[1], in[2], in[3]
		var label *node
		if hot != nil {
			label = in[4]
		}
		f := s.net.Raw(nn.NewScope(params, values), graph.TransposeAllAxes(x, 0, 2, 3, 1), noise, nil, label)
		f = graph.TransposeAllAxes(f, 0, 3, 1, 2)
		if !differentiate {
			return []*node{f}
		}
		wanted := []*node{x, noise}
		for _, i := range trained {
			wanted = append(wanted, values[i])
		}
		grads := graph.Gradient(graph.ReduceAllSum(graph.Mul(u, f)), wanted...)
		double := graph.Gradient(graph.ReduceAllSum(graph.Mul(grads[0], z)), x)[0]
		return append([]*node{f, double}, grads...)
	}, inputs...)
	var all []float64
	for _, i := range trained {
		v, _ := s.tensor(t, "grad/"+params[i].Name)
		all = append(all, v...)
	}
	whole := floats.Norm(all, 2)
	names := []string{"F", "double", "grad_x", "grad_noise"}
	var ours, theirs []float64 // of all parameters together
	for i, got := range out {
		if i < len(names) {
			want, _ := s.tensor(t, names[i])
			s.check(t, names[i], got, want, tol)
			continue
		}
		p := params[trained[i-len(names)]]
		want, _ := s.tensor(t, "grad/"+p.Name)
		rounded := make([]float32, len(got))
		for k, v := range got {
			rounded[k] = float32(v)
		}
		got = fixtures.Widen(p.FromDevice(rounded))
		ours, theirs = append(ours, got...), append(theirs, want...)
		// Some are zero but for rounding, as that of a key's bias.
		if d := floats.Distance(got, want, 2); !(d <= tol*(10*floats.Norm(want, 2)+whole)) {
			t.Errorf("the gradient of %s differs from torch's by %.2g; all gradients together are %.2g", p.Name, d,
				whole)
		}
	}
	if differentiate {
		s.check(t, "gradient of all parameters", ours, theirs, tol)
	}
}

func (s *sample) check(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	e := fixtures.RelL2(got, want)
	t.Logf("%s: %.2g", what, e)
	if !(e <= tol) {
		t.Errorf("%s differs from torch's by %.2g relative, allowed %.2g", what, e, tol)
	}
}
