package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
)

// toy is a small smooth network on 4×4×2 images with three classes, quick to compile and nonlinear in everything it is
// given:
//
//	F = W₂ tanh( W₁ y + sin(noise·n + k) + R ρ + L label ) + S y
type toy struct {
	ratios  int
	as      *parametrization.Parametrization // nil: EDM's
	dropout float64                          // of the hidden values
}

var _ kernels.RawNetwork = toy{}

const (
	toySide, toyChannels = 4, 2
	toyPixels            = toySide * toySide * toyChannels
	toyHidden            = 6
	toyLabels            = 3
)

func (n toy) Spec() kernels.Spec {
	return kernels.Spec{
		Key: fmt.Sprintf("toy %d %g", n.ratios, n.dropout), Height: toySide, Width: toySide, Channels: toyChannels,
		Labels: toyLabels, Ratios: n.ratios, Parametrization: n.as,
	}
}

func (n toy) Params() []nn.Param {
	p := []nn.Param{
		{Name: "in", Shape: []int{toyPixels, toyHidden}},
		{Name: "out", Shape: []int{toyHidden, toyPixels}},
		{Name: "noise", Shape: []int{2, toyHidden}},
		{Name: "label", Shape: []int{toyLabels, toyHidden}},
		{Name: "skip", Shape: []int{toyChannels, toyChannels, 1, 1}},
		{Name: "fixed", Shape: []int{toyHidden}, Frozen: true},
	}
	if n.ratios > 0 {
		p = append(p, nn.Param{Name: "ratio", Shape: []int{n.ratios, toyHidden}})
	}
	return p
}

func (n toy) values(seed uint64) [][]float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out [][]float32
	for _, p := range n.Params() {
		v := make([]float32, p.Size())
		for i := range v {
			v[i] = float32(0.4 * rng.NormFloat64())
		}
		out = append(out, v)
	}
	return out
}

func (n toy) Raw(s *nn.Scope, z, noise, ratios, label *graph.Node) *graph.Node {
	batch := z.Shape().Dimensions[0]
	dot := func(x *graph.Node, p string) *graph.Node {
		return graph.DotGeneral(x, []int{1}, nil, s.Param(p), []int{0}, nil)
	}
	row := func(i int) *graph.Node { return graph.SliceAxis(s.Param("noise"), 0, graph.AxisRange(i, i+1)) }
	h := dot(graph.Reshape(z, batch, toyPixels), "in")
	h = graph.Add(h, graph.Sin(graph.Add(graph.Mul(graph.Reshape(graph.MulScalar(noise, 8), batch, 1), row(0)), row(1))))
	h = graph.Add(h, dot(label, "label"))
	h = graph.Add(h, graph.Reshape(s.Param("fixed"), 1, toyHidden))
	if n.ratios > 0 {
		h = graph.Add(h, dot(graph.MulScalar(ratios, 4), "ratio"))
	}
	out := graph.Reshape(dot(nn.Dropout(s, graph.Tanh(h), n.dropout), "out"), z.Shape().Dimensions...)
	mix := graph.Reshape(s.Param("skip"), toyChannels, toyChannels)
	return graph.Add(out, graph.DotGeneral(z, []int{3}, nil, mix, []int{0}, nil))
}

// toyBatch draws a batch with variances over the whole range.
func toyBatch(seed uint64, n, j int) kernels.EstimateInput64 {
	rng := rand.New(rand.NewPCG(seed, 2))
	normal := func(k int) []float64 {
		v := make([]float64, k)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	in := kernels.EstimateInput64{X0: normal(n * toyPixels), Eps: normal(n * toyPixels), Probe: normal(n * toyPixels)}
	for i := range in.X0 {
		in.X0[i] *= 0.5
	}
	for range n {
		base := 4 * rng.NormFloat64()
		in.Labels = append(in.Labels, int32(rng.IntN(toyLabels+1))-1)
		for range j {
			in.G = append(in.G, math.Exp(base+rng.NormFloat64()))
			in.Omega = append(in.Omega, math.Exp(rng.NormFloat64()))
		}
	}
	return in
}
