package mixture_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// built returns the settings as a net with parameters, and the settings as they are after the rounding of these to
// float32.
func built(t *testing.T, s mixturetest.Settings, labelled bool, blocks [][]float64) (*mixture.Net, [][]float32,
	mixturetest.Settings,
) {
	t.Helper()
	c := mixture.Config{ImgResolution: kernels.Resolution{Height: s.Height, Width: s.Width}, ImgChannels: s.Channels}
	if labelled {
		c.LabelDim = len(s.Weights)
	}
	var laws []mixture.Law
	for i, w := range s.Weights {
		l := mixture.Law{Component: mixture.Component{Weight: w}, Mean: s.Means[i], Cov: s.Covs[i], Blocks: blocks}
		if labelled {
			l.Label = i
		}
		laws = append(laws, l)
	}
	net, values, err := mixture.Build(c, laws, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := c.Pixels()
	out := s
	out.Means, out.Covs = nil, nil
	for i := range s.Weights {
		mean, cov := make([]float64, d), make([]float64, d*d)
		for k := range d {
			mean[k] = float64(values[0][i*d+k])
			axis := values[2][(i*d+k)*d : (i*d+k+1)*d]
			for a, x := range axis {
				for b, y := range axis {
					cov[a*d+b] += float64(values[1][i*d+k]) * float64(x) * float64(y)
				}
			}
		}
		out.Means, out.Covs = append(out.Means, mean), append(out.Covs, cov)
	}
	return net, values, out
}

// TestNetIsTheMixture: on bases with which the covariances commute the flow is that of the mixture of constants; a
// label leaves the components of its class alone, and without one all count.
func TestNetIsTheMixture(t *testing.T) {
	bands, err := basis.DCTBands(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(8, 0))
	x := make([]float32, 2*8)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for name, c := range map[string]struct {
		blocks [][]float64
		b      *basis.Basis
		g      []float64
		labels []int32
	}{
		"full covariance, one noise level": {nil, basis.None(2, 2), []float64{0.3, 2}, nil},
		"diagonal in the DCT":              {mixture.DCTBlocks(2, 2, 2), bands, []float64{0.4, 2, 3, 1e-3}, nil},
		"class 0":                          {nil, basis.None(2, 2), []float64{0.3, 2}, []int32{0, 0}},
		"class 1":                          {nil, basis.None(2, 2), []float64{0.3, 2}, []int32{1, 1}},
		"no class":                         {nil, basis.None(2, 2), []float64{0.3, 2}, []int32{-1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			net, values, same := built(t, random(7, 2, 2, 2, 2), c.labels != nil, c.blocks)
			if c.labels != nil && c.labels[0] >= 0 {
				own := c.labels[0]
				same.Weights, same.Means, same.Covs = same.Weights[own:own+1], same.Means[own:own+1], same.Covs[own:own+1]
			}
			principal, err := net.NetworkOn(values, c.b)
			if err != nil {
				t.Fatal(err)
			}
			constant, err := mixturetest.New(same, c.b)
			if err != nil {
				t.Fatal(err)
			}
			got, want := flowAt(t, principal, values, c.b, x, c.g, c.labels), flowAt(t, constant, nil, c.b, x, c.g, nil)
			for i := range want { // the rounded axes are orthonormal to 1e-7 only
				if math.Abs(float64(got[i]-want[i])) > 2e-5*(1+math.Abs(float64(want[i]))) {
					t.Fatalf("flow %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// flowAt evaluates the flow in float64.
func flowAt(t *testing.T, net kernels.Network, values [][]float32, b *basis.Basis, x []float32, g []float64,
	labels []int32,
) []float32 {
	t.Helper()
	m, err := kernels.NewModelAt(kernels.Float64, devicetest.Fast(t), net, b)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w, err := m.Upload(values)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Release()
	_, flow, _, err := m.Denoise(t.Context(), w, x, g, labels)
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

// random returns a mixture of n Gaussians on h×w×c images.
func random(seed uint64, n, h, w, c int) mixturetest.Settings {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := mixturetest.Settings{Height: h, Width: w, Channels: c}
	d := h * w * c
	for range n {
		mean, root, cov := make([]float64, d), mat.NewDense(d, d, nil), mat.NewDense(d, d, nil)
		for i := range d {
			mean[i] = rng.NormFloat64()
		}
		root.Apply(func(int, int, float64) float64 { return rng.NormFloat64() / math.Sqrt(float64(d)) }, root)
		cov.Mul(root, root.T())
		for i := range d {
			cov.Set(i, i, cov.At(i, i)+0.1)
		}
		s.Weights = append(s.Weights, 0.2+rng.Float64())
		s.Means = append(s.Means, mean)
		s.Covs = append(s.Covs, cov.RawMatrix().Data)
	}
	return s
}

// TestMeasure: the laws of labelled images are their classes' moments.
func TestMeasure(t *testing.T) {
	m := mixture.NewMeasure(2, 2)
	if err := m.Add([]int32{0, 0, 1}, []float64{1, 2, 3, 6, 10, 10}); err != nil {
		t.Fatal(err)
	}
	if err := m.Add([]int32{2}, []float64{0, 0}); err == nil {
		t.Error("a label that is no class is taken")
	}
	laws, err := m.Laws()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{2, 4, 1, 2, 2, 4}, {10, 10, 0, 0, 0, 0}} {
		got := append(append([]float64(nil), laws[i].Mean...), laws[i].Cov...)
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-12 {
				t.Errorf("class %d: mean and covariance %v, want %v", i, got, want)
				break
			}
		}
	}
	if laws[0].Weight != 2 || laws[1].Weight != 1 || laws[1].Label != 1 {
		t.Errorf("weights and labels %+v, %+v", laws[0].Component, laws[1].Component)
	}
}

// TestNetRefusals: what a file of a mixture must not hold, and bases it cannot serve.
func TestNetRefusals(t *testing.T) {
	s := random(10, 1, 2, 2, 1)
	net, values, _ := built(t, s, false, nil)
	for name, change := range map[string]func([]nn.Tensor) []nn.Tensor{
		"missing":         func(t []nn.Tensor) []nn.Tensor { return t[1:] },
		"unknown":         func(t []nn.Tensor) []nn.Tensor { t[0].Name = "mean"; return t },
		"shape":           func(t []nn.Tensor) []nn.Tensor { t[0].Shape = []int{4, 1}; return t },
		"variance zero":   func(t []nn.Tensor) []nn.Tensor { t[1].Data[2] = 0; return t },
		"not finite":      func(t []nn.Tensor) []nn.Tensor { t[0].Data[0] = float32(math.NaN()); return t },
		"not orthonormal": func(t []nn.Tensor) []nn.Tensor { t[2].Data[0] += 0.01; return t },
	} {
		state := net.State(values)
		for i := range state {
			state[i].Data = append([]float32(nil), state[i].Data...)
		}
		var e *nn.StateError
		if _, err := net.Load(change(state)); !errors.As(err, &e) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"unknown field": `{"model_type":"Mixture","img_resolution":2,"img_channels":1,"components":[{"weight":1}],` +
			`"dropout":0}`,
		"no components": `{"model_type":"Mixture","img_resolution":2,"img_channels":1}`,
		"weight":        `{"model_type":"Mixture","img_resolution":2,"img_channels":1,"components":[{"weight":0}]}`,
		"class left out": `{"model_type":"Mixture","img_resolution":2,"img_channels":1,"label_dim":2,` +
			`"components":[{"weight":1}]}`,
		"too large":  `{"model_type":"Mixture","img_resolution":128,"img_channels":3,"components":[{"weight":1}]}`,
		"resolution": `{"model_type":"Mixture","img_resolution":[2],"img_channels":1,"components":[{"weight":1}]}`,
	} {
		var e *nn.ConfigError
		if _, err := mixture.Parse([]byte(text)); !errors.As(err, &e) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	bands, err := basis.DCTBands(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.NetworkOn(values, bands); err == nil {
		t.Error("covariances that mix the subspaces: accepted")
	}
}
