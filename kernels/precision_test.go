package kernels_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// lively draws values under which every layer counts: EDM's own start the last ones near zero.
func lively(params []nn.Param) [][]float32 {
	rng := rand.New(rand.NewPCG(5, 0))
	values := make([][]float32, len(params))
	for i, p := range params {
		values[i] = p.Values(1)
		if len(p.Shape) < 2 {
			continue // biases and norms as they start
		}
		fan := p.Size() / p.Shape[0]
		for k := range values[i] {
			values[i][k] = float32(rng.NormFloat64() / math.Sqrt(float64(fan)))
		}
	}
	return values
}

// onePass has a layer of every kind, on 8×8×3 images, and is quick to compile:
//
//	F = out( h + attention(h) ),  h = silu(norm( in(z) + time(noise) ))
type onePass struct{}

var (
	onePassIn   = nn.Conv2D{Name: "in", In: 3, Out: 16, Kernel: 3}
	onePassTime = nn.Linear{Name: "time", In: 2, Out: 16}
	onePassNorm = nn.GroupNorm{Name: "norm", Channels: 16, Eps: 1e-6}
	onePassMix  = nn.Attention{Name: "mix", Channels: 16, Heads: 1}
	onePassOut  = nn.Conv2D{Name: "out", In: 16, Out: 3, Kernel: 3}
)

func (onePass) Spec() kernels.Spec {
	return kernels.Spec{Key: "one pass", Height: 8, Width: 8, Channels: 3}
}

func (onePass) Params() []nn.Param {
	return slices.Concat(onePassIn.Params(), onePassTime.Params(), onePassNorm.Params(), onePassMix.Params(),
		onePassOut.Params())
}

func (onePass) Raw(s *nn.Scope, z, noise, _, _ *graph.Node) *graph.Node {
	sin, cos := nn.Waves(noise, nn.Constants(noise, []float64{4}))
	time := onePassTime.Apply(s, graph.Concatenate([]*graph.Node{sin, cos}, 1))
	h := nn.Shift(onePassIn.Apply(s, z), graph.Reshape(time, -1, 1, 1, 16))
	h = nn.SiLU(onePassNorm.Apply(s, h))
	return onePassOut.Apply(s, graph.Add(h, onePassMix.Apply(s, h)))
}

func dct8(t *testing.T) *basis.Basis {
	t.Helper()
	b, err := basis.DCT(8, 8, 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// smallBatch is n images and noise levels from 0.03 to 10 in two subspaces.
func smallBatch(n int) kernels.EstimateInput64 {
	rng := rand.New(rand.NewPCG(6, 0))
	in := kernels.EstimateInput64{}
	for i := range n * 8 * 8 * 3 {
		in.X0 = append(in.X0, 0.5*math.Sin(float64(i)/7))
		in.Eps = append(in.Eps, rng.NormFloat64())
		in.Probe = append(in.Probe, float64(1-2*rng.IntN(2)))
	}
	for i := range 2 * n {
		in.G = append(in.G, math.Exp(-7+11*float64(i)/float64(2*n)))
		in.Omega = append(in.Omega, 1)
	}
	return in
}

// distance is |got − want| / |want|.
func distance(got, want []float64) float64 {
	return floats.Distance(got, want, 2) / floats.Norm(want, 2)
}

// TestPrecisionOfEvaluation compares the denoised image, the flow and the network's output with float32's. bfloat16
// keeps 8 bits, so its results are off by about a hundredth, but not by nothing. TF32 is float32 except on NVIDIA GPUs,
// where it keeps 10 bits.
func TestPrecisionOfEvaluation(t *testing.T) {
	t.Parallel()
	in := smallBatch(4)
	outputs := func(p kernels.Precision) [3][]float64 {
		m, w := modelAt(t, p, onePass{}, dct8(t), lively(onePass{}.Params()))
		denoised, flow, raw, err := m.Denoise64(context.Background(), w, in.X0, in.G, nil)
		if err != nil || m.Precision() != p {
			t.Fatalf("precision %s became %s, error %v", p, m.Precision(), err)
		}
		return [3][]float64{denoised, flow, raw}
	}
	exact := outputs(kernels.Float32)
	low, high := [3]float64{}, 1e-5
	if devicetest.Open(t).Name() == "xla:cuda" {
		low, high = [3]float64{1e-6, 1e-5, 1e-5}, 1e-3
	}
	for _, c := range []struct {
		at   kernels.Precision
		low  [3]float64
		high float64
	}{
		{kernels.TF32, low, high},
		{kernels.BFloat16, [3]float64{1e-5, 1e-4, 1e-4}, 2e-2},
	} {
		for i, got := range outputs(c.at) {
			if d := distance(got, exact[i]); !(d >= c.low[i] && d <= c.high) {
				t.Errorf("%s: output %d is %.2g from float32's, want %g to %g", c.at, i, d, c.low[i], c.high)
			}
		}
	}
}

// TestPrecisionOfEstimator compares the terms of the schedule's gradient, second derivatives included, and the gradient
// of the parameters.
func TestPrecisionOfEstimator(t *testing.T) {
	t.Parallel()
	net, values := onePass{}, lively(onePass{}.Params())
	in := smallBatch(8)
	in.Mode = kernels.Full
	results := func(p kernels.Precision) map[string][]float64 {
		m, w := modelAt(t, p, net, dct8(t), values)
		out := map[string][]float64{}
		terms := estimate64(t, m, w, in)
		for name, of := range termsByName {
			out[name] = of(terms)
		}
		grads, err := m.ParameterGradient(w, in)
		if err != nil {
			t.Fatal(err)
		}
		out["parameters"] = fixtures.Widen(slices.Concat(grads...))
		return out
	}
	got := results(kernels.BFloat16)
	for name, want := range results(kernels.Float32) {
		limit := 5e-2
		if name == "residual" {
			limit = 2e-2
		}
		if d := distance(got[name], want); !(d <= limit) {
			t.Errorf("%s is %.2g from float32's, want at most %g", name, d, limit)
		}
		scale := floats.Norm(want, math.Inf(1))
		for i, v := range want {
			if math.Abs(v) > 0.1*scale && got[name][i]*v <= 0 {
				t.Errorf("%s[%d] is %g in bfloat16, %g in float32", name, i, got[name][i], v)
			}
		}
	}
}

// TestTrainingInBFloat16 follows float32's loss, with a state in float32.
func TestTrainingInBFloat16(t *testing.T) {
	t.Parallel()
	net, values := onePass{}, lively(onePass{}.Params())
	in := smallBatch(8)
	const steps = 40
	run := func(p kernels.Precision) (first, last float64, state *kernels.TrainerState) {
		m, _ := modelAt(t, p, net, dct8(t), values)
		tr := newTrainer(t, m, kernels.TrainerConfig{TrainNetwork: true}, values)
		for step := range int64(steps) {
			out := mustStep(t, tr, kernels.StepInput{
				Images: narrow(in.X0), G: in.G, Omega: in.Omega, Seed: 1, Step: step, LR: 3e-3,
				EMABeta: 0.9, Part: 4,
			})
			loss := floats.Sum(out.Loss) / float64(len(out.Loss))
			if step < 4 {
				first += loss / 4
			}
			if step >= steps-4 {
				last += loss / 4
			}
		}
		return first, last, export(t, tr)
	}
	first, last, _ := run(kernels.Float32)
	firstB, lastB, state := run(kernels.BFloat16)
	if !(last < 0.8*first) {
		t.Fatalf("in float32 the loss goes from %g to %g: nothing to compare with", first, last)
	}
	if math.Abs(firstB/first-1) > 0.02 || math.Abs(lastB/last-1) > 0.05 {
		t.Errorf("the loss goes from %g to %g, in float32 from %g to %g", firstB, lastB, first, last)
	}
	rounded := 0
	for _, v := range state.Params[0] {
		if math.Float32bits(v)<<16 == 0 {
			rounded++
		}
	}
	if rounded > len(state.Params[0])/10 {
		t.Errorf("%d of %d trained values are bfloat16: the optimiser's state is not float32", rounded, len(state.Params[0]))
	}
}

func TestPrecisionNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]kernels.Precision{
		"": kernels.Float32, "float32": kernels.Float32, "tf32": kernels.TF32, "bfloat16": kernels.BFloat16,
	} {
		if got, err := kernels.ParsePrecision(name); err != nil || got != want {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
	var input *kernels.InputError
	for _, name := range []string{"float16", "bf16", "float64"} {
		if _, err := kernels.ParsePrecision(name); !errors.As(err, &input) {
			t.Errorf("%q: %v", name, err)
		}
	}
	mix, err := mixturetest.New(mixturetest.Settings{
		Height: 1, Width: 1, Channels: 1, Weights: []float64{1}, Means: [][]float64{{0}}, Covs: [][]float64{{1}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := modelAt(t, kernels.BFloat16, mix, nil, nil); m.Precision() != kernels.Float32 {
		t.Errorf("an analytic network is computed in %s", m.Precision())
	}
	if _, err := kernels.NewModelAt("float16", devicetest.Open(t), onePass{}, nil); !errors.As(err, &input) {
		t.Errorf("a model in float16: %v", err)
	}
}
