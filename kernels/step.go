package kernels

import (
	"cmp"
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

	// Omega [B*J] are the weights of the loss Σ_j ω_j |P_j r|²: ġ²/(g(c+g)) for the trajectory loss, (g+σ_d²)/σ_d² for
	// EDM's score-matching loss, whose residual D − x_0 is √g r and whose weight is (g+σ_d²)/(g σ_d²).
	Omega []float64

	Seed uint64 // with Step, determines noise, probes and dropout
	Step int64

	LR      float64 // learning rate of this step
	EMABeta float64 // decay of the moving average: ema ← β ema + (1−β) params
	Clip    float64 // largest norm of the network's gradient; 0 means no limit

	// Part is the number of images on the device at a time; 0 means all. The step is the same for every Part, ε and probes
	// included, except dropout.
	Part int
	// NetworkG [B*J] are the noise variances at which the network is trained, with the weights Omega; nil means G. The
	// terms are always those at G.
	NetworkG []float64
}

// StepOutput reports on a step.
type StepOutput struct {
	Terms    *Terms    // Residual always; the rest if TrainerConfig.Estimate
	Loss     []float64 // [B] per sample, Σ_j ω_j |P_j r|² summed over pixels
	GradNorm float64   // of the network's gradient; 0 if it is frozen
	Skipped  bool      // the network's gradient was not finite, and nothing was updated
	FLOPs    int64     // of the step's programs
}

// Step draws ε and probes, and takes one optimiser step on the batch mean of the per-sample loss, which is summed over
// subspaces and pixels as in EDM. If the network is frozen, Step only estimates; otherwise dropout is active.
//
// If Step fails before the update, or skips it, the state does not change. If the update fails, the state is lost on
// all devices, and every call returns ErrStateLost until Restore. With several processes, a step is not interrupted
// once it has begun, and a process that cannot take it ends the others.
func (t *Trainer) Step(ctx context.Context, in StepInput) (StepOutput, error) {
	n, err := t.check(in)
	if t.world != nil {
		if err := ctx.Err(); err != nil {
			return StepOutput{}, err
		}
		ctx = context.WithoutCancel(ctx)
		err = t.agree(ctx, t.digest(in), err)
	}
	if err != nil {
		return StepOutput{}, err
	}
	for _, r := range t.replicas {
		r.flops = 0
	}
	take := t.wholeStep
	if in.Part > 0 && in.Part < n || in.NetworkG != nil && t.cfg.TrainNetwork {
		take = t.stepInParts
	}
	out, err := take(ctx, in, n)
	if err != nil {
		return StepOutput{}, err
	}
	out.Loss = make([]float64, n)
	for i, v := range out.Terms.Residual {
		out.Loss[i/out.Terms.J] += in.Omega[i] * v
	}
	if t.norm = out.GradNorm; !finite(t.norm) {
		out.Skipped, t.norm = true, 0
	}
	return out, nil
}

// check checks that the trainer can take a step, and returns the number of its images.
func (t *Trainer) check(in StepInput) (n int, err error) {
	if err := t.usable(); err != nil {
		return 0, err
	}
	m := t.model
	if n, err = m.checkImages("Images", len(in.Images), in.Labels); err != nil {
		return 0, err
	}
	if err := cmp.Or(m.checkLevels("g", n, in.G), m.checkWeights(n, in.Omega)); err != nil {
		return 0, err
	}
	if !finite(in.LR) || !(in.EMABeta >= 0 && in.EMABeta <= 1) {
		return 0, inputf("LR, EMABeta", "must be finite and in [0, 1], got %g and %g", in.LR, in.EMABeta)
	}
	if in.Part < 0 || !(in.Clip >= 0) {
		return 0, inputf("Part, Clip", "must not be negative, got %d and %g", in.Part, in.Clip)
	}
	if in.NetworkG != nil {
		err = m.checkLevels("NetworkG", n, in.NetworkG)
	}
	return n, err
}

// wholeStep takes a step on the batch at once, on every device, or only on the first if the network is frozen.
func (t *Trainer) wholeStep(ctx context.Context, in StepInput, n int) (out StepOutput, err error) {
	first := t.replicas[0]
	if len(t.replicas) > 1 { // compile while ctx can still end it: an update on several devices is not interrupted
		if _, err := first.stepProgram(ctx, t.cfg, n); err != nil {
			return out, err
		}
	}
	run := func(ctx context.Context, r *replica) ([]*device.Buffer, error) { return t.stepOn(ctx, r, in, n) }
	var report []*device.Buffer
	if t.cfg.TrainNetwork {
		report, out.GradNorm, err = t.update(ctx, run)
	} else {
		report, err = run(ctx, first)
	}
	if err != nil {
		return out, err
	}
	defer releaseAll(report)
	out.FLOPs, out.Terms = first.flops, newTerms(t.cfg.Mode, n, t.model.J())
	return out, out.Terms.read(report[0], 0, n)
}

// stepOn runs the program of a step on one device.
func (t *Trainer) stepOn(ctx context.Context, r *replica, in StepInput, n int) ([]*device.Buffer, error) {
	m := r.model
	p, err := r.stepProgram(ctx, t.cfg, n)
	if err != nil {
		return nil, err
	}
	s := m.stage()
	defer s.release()
	labels, err := s.batchArgs(in.Labels, n)
	if err != nil {
		return nil, err
	}
	pass := device.Use
	if t.cfg.TrainNetwork {
		pass = device.Donate
	}
	args := append(labels.withParams(r.state[0], pass),
		put(s, in.Images, m.imageDims(n)...), put(s, in.G, n, m.J()), put(s, in.Omega, n, m.J()),
		s.random(randomState(in.Seed, in.Step)))
	if t.cfg.TrainNetwork {
		for _, b := range r.state[1:] {
			args = append(args, device.Donate(b))
		}
		args = append(args, put(s, t.rates(in), 4))
	}
	return r.run(ctx, s, p, args...)
}

// run runs a program of the current step.
func (r *replica) run(ctx context.Context, s *staging, p *device.Program, args ...device.Arg,
) ([]*device.Buffer, error) {
	r.flops += p.FLOPs()
	return s.run(ctx, p, args...)
}

func (r *replica) stepProgram(ctx context.Context, cfg TrainerConfig, n int) (*device.Program, error) {
	return r.model.program(ctx, fmt.Sprintf("step %+v %d", cfg, n), func(g *graph.Graph) []*Node {
		return r.model.stepGraph(g, cfg, n)
	})
}

// stepGraph draws one step. Its parameters are those of a batch, then rng and, if the network trains, m, v, ema and the
// rates. Its outputs are the terms or, if the network trains, the new state, the terms and the gradient's norm.
func (m *Model) stepGraph(g *graph.Graph, cfg TrainerConfig, batch int) []*Node {
	params := "params"
	if cfg.TrainNetwork {
		params = device.Donated(params)
	}
	f := m.frame(g, batch, params)
	e := f.estimator(cfg.Mode)
	draw := generator{graph.Parameter(g, "rng", shapes.Make(dtypes.Uint64, 3))}
	shape := e.x0.Shape()
	e.eps = draw.normal(shape)
	for range cfg.probesOf(cfg.Mode) {
		e.probes = append(e.probes, draw.probe(cfg.Probe, shape))
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

// estimator declares the images, noise variances and weights of a batch.
func (f *frame) estimator(mode Mode) estimator {
	e := estimator{mode: mode, x0: f.image("images")}
	e.wrapped = f.wrap(f.perSubspace("g"))
	e.omega = f.perSubspace("omega")
	return e
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
