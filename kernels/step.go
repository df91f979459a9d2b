package kernels

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// StepInput is one training batch.
type StepInput struct {
	Images []float32 // [B, H, W, C] in [−1, 1]
	Labels []int32   // [B], −1 for none; nil for all −1
	G      []float64 // [B*J] noise variances

	// Omega [B*J] weighs the loss Σ_j ω_j |P_j r|². The trajectory loss has ω = ġ²/(g(c+g)); ω = (g+σ_d²)/σ_d² is EDM's
	// score-matching loss, whose residual D − x_0 is √g r and whose weight is (g+σ_d²)/(g σ_d²).
	Omega []float64

	Seed uint64 // with Step, determines noise, probes and dropout
	Step int64

	LR      float64 // learning rate of this step
	EMABeta float64 // decay of the moving average: ema ← β ema + (1−β) params
	Clip    float64 // largest norm of the network's gradient, which is scaled down to it; 0: none

	// Part is how many images the device sees at a time; 0: all. The step is that of the whole batch, ε and probes
	// included; only dropout differs.
	Part int
	// NetworkG [B*J] are noise variances at which the network is trained in place of G, with the weights Omega; nil: G.
	// The terms are those at G.
	NetworkG []float64
}

// StepOutput is what a step reports.
type StepOutput struct {
	Terms    *Terms    // Residual always; the rest if TrainerConfig.Estimate
	Loss     []float64 // [B] per sample, Σ_j ω_j |P_j r|² summed over pixels
	GradNorm float64   // of the network's gradient; 0 if it is frozen
	Skipped  bool      // the network's gradient was not finite: nothing was updated
	FLOPs    int64     // of the step's programs
}

// Step draws ε (and probes), and takes one optimiser step on the batch mean of the per-sample loss, which is summed
// over subspaces and pixels as in EDM. With a frozen network it only estimates. Dropout is on while the network trains.
//
// An error before the run leaves the state as it was; so does a gradient that is not finite, which is no error but
// Skipped. If the run itself fails on the device the state is gone and every call answers ErrStateLost until Restore.
func (t *Trainer) Step(ctx context.Context, in StepInput) (StepOutput, error) {
	t.flops = 0
	out, err := t.step(ctx, in)
	out.FLOPs = t.flops
	return out, err
}

func (t *Trainer) step(ctx context.Context, in StepInput) (StepOutput, error) {
	m := t.model
	n, err := t.checkStep(in)
	if err != nil {
		return StepOutput{}, err
	}
	if in.Part > 0 && in.Part < n || in.NetworkG != nil && t.cfg.TrainNetwork {
		return t.stepInParts(ctx, in, n)
	}
	p, err := t.program(ctx, n)
	if err != nil {
		return StepOutput{}, err
	}
	s := m.stage()
	defer s.release()
	labels, err := s.batchArgs(in.Labels, n)
	if err != nil {
		return StepOutput{}, err
	}
	state := device.Use
	if t.cfg.TrainNetwork {
		state = device.Donate
	}
	args := append(labels.with(func() device.Arg { return state(t.state[0]) }),
		put(s, in.Images, m.imageDims(n)...), put(s, in.G, n, m.J()), put(s, in.Omega, n, m.J()),
		s.random(randomState(in.Seed, in.Step)))
	if t.cfg.TrainNetwork {
		for _, b := range t.state[1:] {
			args = append(args, device.Donate(b))
		}
		args = append(args, put(s, rates(t.cfg, t.count, in.LR, in.EMABeta, in.Clip), 4))
	}
	out, err := t.run(ctx, s, p, args...)
	if err != nil {
		t.lost = m.size > 0 && !t.state[0].Live()
		return StepOutput{}, err
	}
	return t.finish(in, n, out)
}

// checkStep checks that the trainer can take a step, and returns the number of its images.
func (t *Trainer) checkStep(in StepInput) (n int, err error) {
	if err := t.usable(); err != nil {
		return 0, err
	}
	m := t.model
	n = len(in.Images) / m.Pixels()
	if n == 0 || len(in.Images) != n*m.Pixels() {
		return 0, inputf("Images", "must hold whole images of %d values, got %d values", m.Pixels(), len(in.Images))
	}
	if err := m.checkLevels(n, in.G, in.Omega); err != nil {
		return 0, err
	}
	if !finite(in.LR) || !(in.EMABeta >= 0 && in.EMABeta <= 1) {
		return 0, inputf("LR, EMABeta", "must be finite and in [0, 1], got %g and %g", in.LR, in.EMABeta)
	}
	if in.Part < 0 || !(in.Clip >= 0) {
		return 0, inputf("Part, Clip", "must not be negative, got %d and %g", in.Part, in.Clip)
	}
	if in.NetworkG == nil {
		return n, nil
	}
	if err := checkLength("NetworkG", len(in.NetworkG), n*m.J()); err != nil {
		return 0, err
	}
	return n, checkVariances("NetworkG", in.NetworkG)
}

// run runs a program of the step under way.
func (t *Trainer) run(
	ctx context.Context, s *staging, p *device.Program, args ...device.Arg,
) ([]*device.Buffer, error) {
	t.flops += p.FLOPs()
	return s.run(ctx, p, args...)
}

// program returns the program of a step on n images.
func (t *Trainer) program(ctx context.Context, n int) (*device.Program, error) {
	m := t.model
	return m.program(ctx, fmt.Sprintf("step %s %d", t.cfg.key(), n), func(g *graph.Graph) []*Node {
		return m.stepGraph(g, t.cfg, n)
	})
}

// finish takes over the new state and reads what the step reports.
func (t *Trainer) finish(in StepInput, n int, out []*device.Buffer) (StepOutput, error) {
	report := out
	if t.cfg.TrainNetwork {
		t.state, report = out[:4:4], out[4:]
	}
	defer releaseAll(report)
	var res StepOutput
	if t.cfg.TrainNetwork {
		var err error
		if res.GradNorm, err = t.countStep(report[1]); err != nil {
			return res, err
		}
		res.Skipped = !finite(res.GradNorm)
	}
	var err error
	if res.Terms, err = readTerms(report[0], t.cfg.Mode, n, n, t.model.J()); err != nil {
		return res, err
	}
	res.Loss = make([]float64, n)
	for i, r := range res.Terms.Residual {
		res.Loss[i/t.model.J()] += in.Omega[i] * r
	}
	return res, nil
}

// countStep reads the gradient's norm, and counts the step unless it was skipped.
func (t *Trainer) countStep(report *device.Buffer) (float64, error) {
	norm := make([]float64, 1)
	if err := device.Download(report, norm); err != nil {
		return 0, err
	}
	if finite(norm[0]) {
		t.count++
	}
	return norm[0], nil
}

// stepGraph is the program of one step. Its parameters are frame's, then images, g, omega, rng and, if the network
// trains, m, v, ema and the rates; its outputs the new state if the network trains, the terms, and the gradient's norm.
func (m *Model) stepGraph(g *graph.Graph, cfg TrainerConfig, batch int) []*Node {
	params := "params"
	if cfg.TrainNetwork {
		params = device.Donated(params)
	}
	f := m.frameOf(g, batch, params)
	e := estimator{mode: cfg.Mode, x0: f.image("images")}
	e.wrapped = f.wrap(f.perSubspace("g"))
	e.omega = f.perSubspace("omega")
	draw := generator{graph.Parameter(g, "rng", shapes.Make(dtypes.Uint64, 3))}
	shape := e.x0.Shape()
	e.eps = draw.normal(shape)
	if cfg.Mode.probed() {
		for range cfg.Probes {
			e.probes = append(e.probes, draw.probe(cfg.Probe, shape))
		}
	}
	if !cfg.TrainNetwork {
		terms, _ := e.build()
		return []*Node{graph.Stack(terms, 0)}
	}
	state := f.moments(f.flat)
	rate := f.param("rates", 4)
	e.rng = draw.state
	e.train = f.trained()
	terms, grads := e.build()
	grad := graph.MulScalar(m.flatten(g, grads), 1/float64(batch))
	out := adamOn(cfg, state, grad, rate)
	return append(out[:4:4], graph.Stack(terms, 0), out[4])
}

// trained lists the parameters that are not frozen.
func (f *frame) trained() []*Node {
	var out []*Node
	for i, p := range f.model.params {
		if !p.Frozen {
			out = append(out, f.values[i])
		}
	}
	return out
}
