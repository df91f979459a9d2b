package kernels_test

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
)

// toySteps is a step on seven images, which three does not divide.
func toySteps(step int64) kernels.StepInput { return stepOn(toyBatch(uint64(200+step), 7, 2), step) }

// sameStates compares all values of two trainers, whose device computes in float64.
func sameStates(t *testing.T, got, want *kernels.TrainerState) {
	t.Helper()
	if got.Count != want.Count {
		t.Errorf("%d steps counted, want %d", got.Count, want.Count)
	}
	for name, pair := range map[string][2][][]float32{
		"params": {got.Params, want.Params}, "m": {got.M, want.M}, "v": {got.V, want.V}, "ema": {got.EMA, want.EMA},
	} {
		expect(t, name, fixtures.Widen(slices.Concat(pair[0]...)), fixtures.Widen(slices.Concat(pair[1]...)), 1e-6)
	}
}

// TestPartsAreTheBatch: steps whose images pass the device three at a time, the last part filled up, are those of the
// whole batch, with the same noise and probes.
func TestPartsAreTheBatch(t *testing.T) {
	t.Parallel()
	net := toy{}
	m, _ := model64(t, net, toyBasis(t, 2), net.values(4))
	cfg := kernels.TrainerConfig{
		TrainNetwork: true, Estimate: true, Mode: kernels.Full, Probe: kernels.Gaussian,
		Probes: 2,
	}
	whole, parts := newTrainer(t, m, cfg, net.values(4)), newTrainer(t, m, cfg, net.values(4))
	for step := range int64(3) {
		in := toySteps(step)
		in.Clip = 5
		want := mustStep(t, whole, in)
		in.Part = 3
		got := mustStep(t, parts, in)
		if math.Abs(got.GradNorm/want.GradNorm-1) > 1e-10 || got.Skipped != want.Skipped {
			t.Errorf("step %d: gradient norm %g, want %g", step, got.GradNorm, want.GradNorm)
		}
		expect(t, "loss", got.Loss, want.Loss, 1e-10)
		expect(t, "residual", got.Terms.Residual, want.Terms.Residual, 1e-10)
		expect(t, "implicit 1", got.Terms.Implicit1, want.Terms.Implicit1, 1e-10)
		expect(t, "implicit 2", got.Terms.Implicit2, want.Terms.Implicit2, 1e-10)
	}
	sameStates(t, export(t, parts), export(t, whole))
}

// TestNetworkLevels: with noise levels of its own the network takes the step of a trainer without the estimator there,
// and the terms stay those at G.
func TestNetworkLevels(t *testing.T) {
	t.Parallel()
	net := toy{ratios: 1}
	m, _ := model64(t, net, toyBasis(t, 2), net.values(4))
	both := newTrainer(t, m, kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Backprop},
		net.values(4))
	alone := newTrainer(t, m, kernels.TrainerConfig{TrainNetwork: true}, net.values(4))
	frozen := newTrainer(t, m, kernels.TrainerConfig{Estimate: true, Mode: kernels.Backprop}, net.values(4))
	in := toySteps(1)
	want := mustStep(t, frozen, in)
	other := in
	other.G = slices.Clone(in.G)
	for i := range other.G {
		other.G[i] *= 1.5 + math.Sin(float64(i))
	}
	moved := mustStep(t, alone, other)
	in.NetworkG = other.G
	got := mustStep(t, both, in)
	expect(t, "residual", got.Terms.Residual, want.Terms.Residual, 1e-10)
	expect(t, "backprop", got.Terms.Backprop, want.Terms.Backprop, 1e-10)
	if math.Abs(got.GradNorm/moved.GradNorm-1) > 1e-10 {
		t.Errorf("gradient norm %g, want %g", got.GradNorm, moved.GradNorm)
	}
	sameStates(t, export(t, both), export(t, alone))
}

// TestClip: a gradient longer than the limit enters Adam's first moment at that length, a shorter one as it is.
func TestClip(t *testing.T) {
	t.Parallel()
	net := toy{ratios: 1}
	m, _ := model64(t, net, toyBasis(t, 2), net.values(4))
	first := func(clip float64) (norm, moment float64) {
		tr := newTrainer(t, m, kernels.TrainerConfig{TrainNetwork: true}, net.values(4))
		in := toySteps(0)
		in.Clip = clip
		out := mustStep(t, tr, in)
		for _, v := range fixtures.Widen(slices.Concat(export(t, tr).M...)) {
			moment += v * v
		}
		return out.GradNorm, math.Sqrt(moment) / 0.1
	}
	norm, moment := first(0)
	if math.Abs(moment/norm-1) > 1e-5 {
		t.Errorf("without a limit %g becomes %g", norm, moment)
	}
	for _, clip := range []float64{norm / 3, 3 * norm} {
		again, moment := first(clip)
		if want := min(norm, clip); again != norm || math.Abs(moment/want-1) > 1e-5 {
			t.Errorf("a gradient of %g clipped to %g has length %g, reported as %g", norm, clip, moment, again)
		}
	}
}
