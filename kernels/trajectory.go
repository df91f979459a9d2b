package kernels

import (
	"cmp"
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// Trajectory is a batch of samples that moves along the probability flow. The state x and the last evaluations stay on
// the device. A Trajectory belongs to one goroutine.
type Trajectory struct {
	model   *Model
	weights *Weights
	stage   *staging // buffers that stay until Close: args and coordinates
	args    batchArgs
	n       int  // number of samples
	batch   int  // the same with padding
	keep    int  // length of the history
	data    bool // see KeepDenoised
	states  bool // see KeepStates

	coordinates coordinates

	x        *device.Buffer
	denoised *device.Buffer   // of the last evaluation
	history  []*device.Buffer // newest first
	closed   bool
}

// NewTrajectory starts a batch at x = latents, with a history of the given length. It retains w until Close. The
// programs that it runs are those of a number of rows, batch, at least B.
//
//	latents  [B, H, W, C]
//	labels   [B], −1 for none; nil for all −1
//
// To start from noise of variance g, call Combine with α_j = √g_j.
func (m *Model) NewTrajectory(w *Weights, latents []float32, labels []int32, history, batch int) (*Trajectory, error) {
	n, err := m.checkImages("latents", len(latents), labels)
	if err != nil {
		return nil, err
	}
	if err := w.usable(); err != nil {
		return nil, err
	}
	t := &Trajectory{model: m, weights: w.Retain(), stage: m.stage(), n: n, batch: max(n, batch), keep: history}
	if t.args, err = t.stage.batchArgs(labels, t.batch); err == nil {
		t.x, err = t.upload(latents)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// upload copies images of all samples to the device, with padding.
func (t *Trajectory) upload(images []float32) (*device.Buffer, error) {
	m := t.model
	return device.UploadAs(m.dev, m.dtype, padded(images, m.Pixels(), t.batch), m.imageDims(t.batch)...)
}

// KeepDenoised makes the history hold denoised images D instead of flows, for solvers that predict the data. Call it
// before the first evaluation.
func (t *Trajectory) KeepDenoised() { t.data = true }

// KeepStates makes the history hold the state of each evaluation after it: E_{2i} is the evaluation i steps ago and
// E_{2i+1} its state. Call it before the first evaluation.
func (t *Trajectory) KeepStates() { t.states = true }

// Evaluate computes the flow at x for the noise variances g [B*J] and puts it in front of the history.
func (t *Trajectory) Evaluate(ctx context.Context, g []float64) error {
	m := t.model
	if err := cmp.Or(t.usable(), m.checkLevels("g", t.n, g)); err != nil {
		return err
	}
	s := m.stage()
	defer s.release()
	out, err := m.evaluate(ctx, s, t.weights, t.args, t.batch, device.Use(t.x), g)
	if err != nil {
		return err
	}
	releaseAll(out[2:])
	t.push(out[0], out[1])
	return nil
}

// Record puts an evaluation at x by [Model.Denoise] in front of the history. The flow is not used after
// [Trajectory.KeepDenoised], and may then be nil.
//
//	denoised, flow  [B, H, W, C]
func (t *Trajectory) Record(denoised, flow []float32) error {
	size := t.n * t.model.Pixels()
	if err := cmp.Or(t.usable(), checkLength("denoised", len(denoised), size)); err != nil {
		return err
	}
	if !t.data || flow != nil {
		if err := checkLength("flow", len(flow), size); err != nil {
			return err
		}
	}
	d, err := t.upload(denoised)
	if err != nil {
		return err
	}
	var f *device.Buffer
	if !t.data {
		if f, err = t.upload(flow); err != nil {
			d.Release()
			return err
		}
	}
	t.push(d, f)
	return nil
}

// push puts an evaluation in front of the history, which then owns it.
func (t *Trajectory) push(denoised, flow *device.Buffer) {
	t.denoised.Release()
	t.denoised = nil
	newest := flow
	if t.data {
		newest = denoised
		flow.Release()
	} else {
		t.denoised = denoised
	}
	entries := []*device.Buffer{newest}
	if t.states {
		entries = append(entries, t.x)
	}
	t.history = append(entries, t.history...)
	if len(t.history) > t.keep {
		for _, b := range t.history[t.keep:] {
			if b != t.x {
				b.Release()
			}
		}
		t.history = t.history[:t.keep]
	}
}

// replace makes x the state, and releases the previous one unless it is in the history.
func (t *Trajectory) replace(x *device.Buffer) {
	if !slices.Contains(t.history, t.x) {
		t.x.Release()
	}
	t.x = x
}

// Combine moves the state:
//
//	x ← Σ_j P_j( α_j x + Σ_i β_ji E_i ),  E_0 the newest evaluation
//
//	alpha  [B*J]
//	beta   [B*J*h], newest first, for any h up to the length of the history; nil for none
//
// Weights of evaluations that do not exist yet must be zero.
func (t *Trajectory) Combine(ctx context.Context, alpha, beta []float64) error {
	return t.move(ctx, t.history, alpha, beta)
}

// AddNoise adds the caller's noise to the state:
//
//	x ← x + Σ_j P_j s_j ξ
//
//	noise  ξ [B, H, W, C]
//	scale  s [B*J]
func (t *Trajectory) AddNoise(ctx context.Context, noise []float32, scale []float64) error {
	if err := checkLength("noise", len(noise), t.n*t.model.Pixels()); err != nil {
		return err
	}
	xi, err := t.upload(noise)
	if err != nil {
		return err
	}
	defer xi.Release()
	return t.move(ctx, []*device.Buffer{xi}, slices.Repeat([]float64{1}, len(scale)), scale)
}

// move replaces x by Σ_j P_j(α_j x + Σ_i β_ji E_i).
func (t *Trajectory) move(ctx context.Context, evaluations []*device.Buffer, alpha, beta []float64) error {
	m, j := t.model, t.model.J()
	rows := t.n * j
	h := len(beta) / rows
	if err := cmp.Or(t.usable(), checkLength("alpha", len(alpha), rows),
		checkLength("beta", len(beta), min(h, t.keep)*rows)); err != nil {
		return err
	}
	p, err := m.combineProgram(ctx, t.batch, t.keep)
	if err != nil {
		return err
	}
	per := j * (t.keep + 1) // a sample's α_1 … α_J, β_10 … β_J0, β_11 …
	coefficients := make([]float64, t.n*per)
	for b := range t.n {
		copy(coefficients[b*per:], alpha[b*j:(b+1)*j])
		for i := range h {
			for k := range j {
				coefficients[b*per+(i+1)*j+k] = beta[(b*j+k)*h+i]
			}
		}
	}
	s := m.stage()
	defer s.release()
	weights := put(s, padded(coefficients, per, t.batch), t.batch, per)
	return t.run(ctx, s, p, slices.Concat(t.args.basis, []device.Arg{device.Use(t.x), weights}), evaluations)
}

// run moves the state by a program, which takes a full history after its other arguments. x stands in for evaluations
// that do not exist yet; their coefficients are zero.
func (t *Trajectory) run(ctx context.Context, s *staging, p *device.Program, args []device.Arg,
	evaluations []*device.Buffer,
) error {
	for i := range t.keep {
		e := t.x
		if i < len(evaluations) {
			e = evaluations[i]
		}
		args = append(args, device.Use(e))
	}
	out, err := s.run(ctx, p, args...)
	if err != nil {
		return err
	}
	t.replace(out[0])
	return nil
}

// X copies the state into dst [B, H, W, C].
func (t *Trajectory) X(dst []float32) error { return t.read(t.x, dst) }

// Denoised copies the denoised image of the last evaluation into dst.
func (t *Trajectory) Denoised(dst []float32) error {
	if t.data {
		return t.read(t.history[0], dst)
	}
	return t.read(t.denoised, dst)
}

func (t *Trajectory) read(b *device.Buffer, dst []float32) error {
	if err := cmp.Or(t.usable(), checkLength("dst", len(dst), t.n*t.model.Pixels())); err != nil {
		return err
	}
	return downloadPadded(b, dst)
}

func (t *Trajectory) usable() error {
	if t.closed {
		return ErrClosed
	}
	return nil
}

// Close frees the device's memory. It may be called twice.
func (t *Trajectory) Close() {
	if t.closed {
		return
	}
	t.closed = true
	t.stage.release()
	t.replace(nil)
	releaseAll(t.history)
	t.denoised.Release()
	t.weights.Release()
}
