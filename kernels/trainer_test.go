package kernels_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
)

func newTrainer(t *testing.T, m *kernels.Model, cfg kernels.TrainerConfig, init [][]float32) *kernels.Trainer {
	t.Helper()
	tr, err := m.NewTrainer(cfg, init)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

// stepOn is a training step on a batch.
func stepOn(in kernels.EstimateInput64, step int64) kernels.StepInput {
	return kernels.StepInput{
		Images: narrow(in.X0), Labels: in.Labels, G: in.G, Omega: in.Omega,
		Seed: 42, Step: step, LR: 1e-2, EMABeta: 0.9,
	}
}

// toyStep is a step on four images in two subspaces.
func toyStep(step int64) kernels.StepInput { return stepOn(toyBatch(uint64(100+step), 4, 2), step) }

func mustStep(t *testing.T, tr *kernels.Trainer, in kernels.StepInput) kernels.StepOutput {
	t.Helper()
	out, err := tr.Step(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func export(t *testing.T, tr *kernels.Trainer) *kernels.TrainerState {
	t.Helper()
	s, err := tr.Export(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStepIsAdam follows three steps on the host: the gradient of the batch mean at the noise the device drew, Adam
// with bias correction, the moving average.
func TestStepIsAdam(t *testing.T) {
	t.Parallel()
	net := toy{ratios: 1}
	m, _ := model64(t, net, toyBasis(t, 2), net.values(4))
	tr := newTrainer(t, m, kernels.TrainerConfig{TrainNetwork: true, Beta2: 0.99}, net.values(4))
	params := net.values(4)
	mean, square, ema := zeros(params), zeros(params), net.values(4)
	for step := range int64(3) {
		in := toyStep(step)
		eps, err := m.Noise(in.Seed, in.Step, 4)
		if err != nil {
			t.Fatal(err)
		}
		w, err := m.Upload(params)
		if err != nil {
			t.Fatal(err)
		}
		batch := kernels.EstimateInput64{X0: fixtures.Widen(in.Images), Eps: eps, G: in.G, Omega: in.Omega, Labels: in.Labels}
		grads, err := m.ParameterGradient(w, batch)
		if err != nil {
			t.Fatal(err)
		}
		batch.Mode = kernels.Explicit
		terms := estimate64(t, m, w, batch)
		w.Release()
		var norm float64
		for p := range params {
			for i := range params[p] {
				g := float64(grads[p][i]) / 4
				norm += g * g
				a := 0.9*float64(mean[p][i]) + 0.1*g
				b := 0.99*float64(square[p][i]) + 0.01*g*g
				mean[p][i], square[p][i] = float32(a), float32(b)
				k := float64(step + 1)
				next := float64(params[p][i]) - 1e-2*a/(1-math.Pow(0.9, k))/(math.Sqrt(b/(1-math.Pow(0.99, k)))+1e-8)
				params[p][i] = float32(next)
				ema[p][i] = float32(0.9*float64(ema[p][i]) + 0.1*next)
			}
		}
		out := mustStep(t, tr, in)
		if out.Skipped || math.Abs(out.GradNorm/math.Sqrt(norm)-1) > 1e-5 {
			t.Errorf("step %d: gradient norm %g, want %g; skipped %v", step, out.GradNorm, math.Sqrt(norm), out.Skipped)
		}
		for b := range 4 {
			want := in.Omega[2*b]*terms.Residual[2*b] + in.Omega[2*b+1]*terms.Residual[2*b+1]
			if math.Abs(out.Loss[b]/want-1) > 1e-4 { // the host's parameters are rounded to float32
				t.Errorf("step %d: loss %d is %g, want %g", step, b, out.Loss[b], want)
			}
		}
	}
	got := export(t, tr)
	if got.Count != 3 {
		t.Errorf("%d steps counted", got.Count)
	}
	for name, pair := range map[string][2][][]float32{
		"params": {got.Params, params}, "m": {got.M, mean}, "v": {got.V, square}, "ema": {got.EMA, ema},
	} {
		for p := range params {
			for i := range params[p] {
				if d := math.Abs(float64(pair[0][p][i] - pair[1][p][i])); !(d < 2e-5*(1+math.Abs(float64(pair[1][p][i])))) {
					t.Fatalf("%s of %s[%d] is %g, want %g", name, net.Params()[p].Name, i, pair[0][p][i], pair[1][p][i])
				}
			}
		}
	}
	frozen := 5
	if !reflect.DeepEqual(got.Params[frozen], net.values(4)[frozen]) {
		t.Error("a frozen parameter moved")
	}
}

func zeros(like [][]float32) [][]float32 {
	out := make([][]float32, len(like))
	for i, v := range like {
		out[i] = make([]float32, len(v))
	}
	return out
}

// TestTrainerState: a restored trainer goes on bit for bit; a step that is refused or not finite changes nothing; what
// was published stays as it was.
func TestTrainerState(t *testing.T) {
	t.Parallel()
	net := toy{ratios: 1}
	m, _ := modelOn(t, devicetest.Fast(t), kernels.Float32, net, toyBasis(t, 2), net.values(4))
	cfg := kernels.TrainerConfig{TrainNetwork: true, Estimate: true}
	tr := newTrainer(t, m, cfg, net.values(4))
	mustStep(t, tr, toyStep(0))

	before := export(t, tr)
	bad := toyStep(1)
	bad.Labels[0] = toyLabels
	if _, err := tr.Step(context.Background(), bad); err == nil {
		t.Error("a label that does not exist was trained on")
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tr.Step(cancelled, toyStep(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled step: %v", err)
	}
	bad = toyStep(1)
	bad.Images[3] = float32(math.NaN())
	if out := mustStep(t, tr, bad); !out.Skipped {
		t.Error("a step on NaN was not skipped")
	}
	if !reflect.DeepEqual(export(t, tr), before) {
		t.Error("a step that failed changed the state")
	}

	published, err := tr.Publish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer published.Release()
	if want := int64(4 * len(slices.Concat(before.EMA...))); published.Bytes() != want {
		t.Errorf("the published average takes %d bytes, want %d", published.Bytes(), want)
	}
	want := mustStep(t, tr, toyStep(1))
	if values, err := published.Export(); err != nil || !reflect.DeepEqual(values, before.EMA) {
		t.Errorf("the published average changed: %v", err)
	}
	twin := newTrainer(t, m, cfg, net.values(5))
	if err := twin.Restore(before); err != nil {
		t.Fatal(err)
	}
	if got := mustStep(t, twin, toyStep(1)); !reflect.DeepEqual(got, want) {
		t.Errorf("the restored trainer reports %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(export(t, twin), export(t, tr)) {
		t.Error("the restored trainer went elsewhere")
	}
	if err := twin.Restore(&kernels.TrainerState{Params: before.Params[1:]}); err == nil {
		t.Error("a state with a missing tensor was restored")
	}
	mustStep(t, twin, toyStep(2))
	twin.LoseState(0, false)
	if _, err := twin.Step(context.Background(), toyStep(3)); err == nil {
		t.Error("a step without state succeeded")
	}
	if _, err := twin.Export(context.Background()); !errors.Is(err, kernels.ErrStateLost) {
		t.Errorf("after the state is lost: %v", err)
	}
	if err := twin.Restore(before); err != nil {
		t.Error(err)
	}
	mustStep(t, twin, toyStep(1))
	twin.Close()
	if _, err := twin.Step(context.Background(), toyStep(3)); !errors.Is(err, kernels.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestFrozenTrainer: without training, a step is the estimator at the noise and the probes that it draws, averaged over
// them, and leaves the weights alone.
func TestFrozenTrainer(t *testing.T) {
	t.Parallel()
	net := toy{}
	m, w := model64(t, net, toyBasis(t, 2), net.values(4))
	for probe, count := range map[string]int{kernels.Rademacher: 1, kernels.Sphere: 2} {
		tr := newTrainer(t, m, kernels.TrainerConfig{Estimate: true, Mode: kernels.Full, Probe: probe, Probes: count},
			net.values(4))
		in := toyStep(7)
		out := mustStep(t, tr, in)
		eps, err := m.Noise(in.Seed, in.Step, 4)
		if err != nil {
			t.Fatal(err)
		}
		batch := kernels.EstimateInput64{
			Mode: kernels.LossOnly, X0: fixtures.Widen(in.Images), Eps: eps, G: in.G, Omega: in.Omega,
			Labels: in.Labels,
		}
		expect(t, probe+" residual", out.Terms.Residual, estimate64(t, m, w, batch).Residual, 1e-12)
		batch.Mode = kernels.Full
		mean := make([]float64, len(in.G))
		for index := range count {
			if batch.Probe, err = m.Probe(probe, index, in.Seed, in.Step, 4); err != nil {
				t.Fatal(err)
			}
			want := estimate64(t, m, w, batch)
			expect(t, probe+" explicit x", out.Terms.ExplicitX, want.ExplicitX, 1e-12)
			expect(t, probe+" implicit 3", out.Terms.Implicit3, want.Implicit3, 1e-12)
			for i, v := range want.Implicit1 {
				mean[i] += v / float64(count)
			}
		}
		expect(t, probe+" implicit 1", out.Terms.Implicit1, mean, 1e-12)
		if s := export(t, tr); s.M != nil || !reflect.DeepEqual(s.Params, net.values(4)) {
			t.Error("a frozen network has no moments, and its parameters stay")
		}
	}
}

// TestDraws: ε is unit normal, and every probe has E zzᵀ = I. 4096 draws; each bound is five standard errors, so a
// false alarm has probability 6e-7.
func TestDraws(t *testing.T) {
	m, _ := model64(t, toy{}, nil, toy{}.values(1))
	const n = 128
	for _, kind := range []string{"noise", kernels.Gaussian, kernels.Rademacher, kernels.Sphere} {
		draw := func(step int64) []float64 {
			var z []float64
			var err error
			if kind == "noise" {
				z, err = m.Noise(1, step, n)
			} else {
				z, err = m.Probe(kind, 0, 1, step, n)
			}
			if err != nil {
				t.Fatal(err)
			}
			return z
		}
		z, other := draw(1), draw(2)
		var sum, square, neighbours, cross float64
		for i, v := range z {
			sum += v
			square += v * v
			cross += v * other[i]
			if i > 0 {
				neighbours += v * z[i-1]
			}
		}
		k := math.Sqrt(float64(len(z)))
		if math.Abs(sum) > 5*k || math.Abs(square-k*k) > 5*math.Sqrt2*k || math.Abs(neighbours) > 5*k ||
			math.Abs(cross) > 5*k {
			t.Errorf("%s: Σz %.1f, Σz² %.1f of %.0f, Σz_i z_{i+1} %.1f, other step %.1f", kind, sum, square, k*k, neighbours,
				cross)
		}
		for b := range n {
			var norm float64
			for _, v := range z[b*toyPixels : (b+1)*toyPixels] {
				norm += v * v
			}
			if (kind == kernels.Sphere || kind == kernels.Rademacher) && math.Abs(norm-toyPixels) > 1e-9 {
				t.Fatalf("%s: |z|² = %g, want %d", kind, norm, toyPixels)
			}
		}
	}
}

// TestTrainerConfig: what no step can be built for is refused.
func TestTrainerConfig(t *testing.T) {
	m, _ := model64(t, toy{}, nil, toy{}.values(1))
	for _, cfg := range []kernels.TrainerConfig{
		{},
		{TrainNetwork: true, Mode: "best"},
		{Estimate: true, Probe: "cauchy"},
		{Estimate: true, Probes: -1},
		{TrainNetwork: true, Beta1: 1},
	} {
		if _, err := m.NewTrainer(cfg, toy{}.values(1)); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
