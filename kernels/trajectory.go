package kernels

import (
	"context"
	"errors"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// Trajectory is a batch of samples on its way along the probability flow. The state x and the last few evaluations stay
// on the device. A Trajectory belongs to one goroutine.
type Trajectory struct {
	model   *Model
	weights *Weights
	args    *batchArgs
	n       int // samples
	batch   int // samples computed
	keep    int // evaluations kept
	data    bool
	states  bool

	coordinates *coordinates // nil: the model's subspaces

	x        *device.Buffer
	denoised *device.Buffer   // of the last evaluation
	history  []*device.Buffer // newest first
	closed   bool
}

// NewTrajectory starts a batch at x = latents, keeping the last history evaluations. It retains w until Close.
//
//	latents  [B, H, W, C]
//	labels   [B], −1 for none; nil for all −1
//
// Starting noise of variance g is one Combine with α_j = √g_j.
func (m *Model) NewTrajectory(_ context.Context, w *Weights, latents []float32, labels []int32,
	history int,
) (*Trajectory, error) {
	n := len(latents) / m.Pixels()
	switch {
	case n == 0 || len(latents) != n*m.Pixels():
		return nil, inputf("latents", "must hold whole images of %d values, got %d values", m.Pixels(), len(latents))
	case history < 1:
		return nil, inputf("history", "must be at least 1, got %d", history)
	case labels != nil && len(labels) != n:
		return nil, inputf("labels", "must be one for each of %d images, got %d", n, len(labels))
	case w.refs.Load() <= 0:
		return nil, ErrReleased
	}
	t := &Trajectory{model: m, weights: w.Retain(), n: n, batch: Bucket(n), keep: history}
	var err error
	if t.args, err = m.batchArgs(padded(labels, 1, t.batch), t.batch); err != nil {
		t.Close()
		return nil, err
	}
	x := padded(latents, m.Pixels(), t.batch)
	if t.x, err = device.UploadAs(m.dev, m.dtype, x, m.imageDims(t.batch)...); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Samples returns the number of samples, without padding.
func (t *Trajectory) Samples() int { return t.n }

// KeepDenoised makes the history hold denoised images D instead of flows, for solvers that predict the data. Call it
// before the first evaluation.
func (t *Trajectory) KeepDenoised() { t.data = true }

// KeepStates makes the history hold the state that each evaluation was made at, behind it: E_{2i} is the evaluation i
// back and E_{2i+1} its state. Call it before the first evaluation.
func (t *Trajectory) KeepStates() { t.states = true }

// Evaluate computes the flow at x for the noise variances g [B*J] and puts it in front of the history.
func (t *Trajectory) Evaluate(ctx context.Context, g []float64) error {
	m := t.model
	if t.closed {
		return ErrClosed
	}
	if err := checkLength("g", len(g), t.n*m.J()); err != nil {
		return err
	}
	if err := checkVariances("g", g); err != nil {
		return err
	}
	out, err := m.evaluate(ctx, t.weights, t.args, t.batch, t.x, g)
	if err != nil {
		return err
	}
	out.raw.Release()
	t.push(out.denoised, out.flow)
	return nil
}

// Record puts an evaluation at x that was made elsewhere, by [Model.Denoise], in front of the history.
//
//	denoised, flow  [B, H, W, C]
func (t *Trajectory) Record(denoised, flow []float32) error {
	m, size := t.model, t.n*t.model.Pixels()
	if t.closed {
		return ErrClosed
	}
	if err := errors.Join(checkLength("denoised", len(denoised), size), checkLength("flow", len(flow), size)); err != nil {
		return err
	}
	dims := m.imageDims(t.batch)
	d, err := device.UploadAs(m.dev, m.dtype, padded(denoised, m.Pixels(), t.batch), dims...)
	if err != nil {
		return err
	}
	f, err := device.UploadAs(m.dev, m.dtype, padded(flow, m.Pixels(), t.batch), dims...)
	if err != nil {
		d.Release()
		return err
	}
	t.push(d, f)
	return nil
}

// push puts an evaluation in front of the history, which owns it from then on.
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
	made := []*device.Buffer{newest}
	if t.states {
		made = append(made, t.x)
	}
	t.history = append(made, t.history...)
	if len(t.history) > t.keep {
		for _, b := range t.history[t.keep:] {
			if b != t.x {
				b.Release()
			}
		}
		t.history = t.history[:t.keep]
	}
}

// replace makes x the state. The history keeps the one before, where it is there.
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
//	beta   [B*J*h], newest first, for any h up to the evaluations kept; nil for none
func (t *Trajectory) Combine(ctx context.Context, alpha, beta []float64) error {
	rows := t.n * t.model.J()
	if t.closed {
		return ErrClosed
	}
	if err := checkLength("alpha", len(alpha), rows); err != nil {
		return err
	}
	h := len(beta) / rows
	switch {
	case len(beta) != h*rows:
		return inputf("beta", "must hold a multiple of %d values, got %d", rows, len(beta))
	case h > t.keep:
		return inputf("beta", "must weigh at most the %d evaluations kept, got %d", t.keep, h)
	}
	if err := checkFinite("alpha", alpha); err != nil {
		return err
	}
	if err := checkFinite("beta", beta); err != nil {
		return err
	}
	for i, v := range beta {
		if i%max(h, 1) >= len(t.history) && v != 0 {
			return inputf("beta", "must weigh the %d evaluations made, got a weight of evaluation %d", len(t.history), i%h)
		}
	}
	return t.move(ctx, t.history, alpha, beta, h)
}

// AddNoise moves the state by noise of the caller's own, with the program of Combine:
//
//	x ← x + Σ_j P_j s_j ξ
//
//	noise  ξ [B, H, W, C]
//	scale  s [B*J]
func (t *Trajectory) AddNoise(ctx context.Context, noise []float32, scale []float64) error {
	m, rows := t.model, t.n*t.model.J()
	if t.closed {
		return ErrClosed
	}
	if err := errors.Join(checkLength("noise", len(noise), t.n*m.Pixels()), checkLength("scale", len(scale), rows),
		checkFinite("scale", scale)); err != nil {
		return err
	}
	xi, err := device.UploadAs(m.dev, m.dtype, padded(noise, m.Pixels(), t.batch), m.imageDims(t.batch)...)
	if err != nil {
		return err
	}
	defer xi.Release()
	return t.move(ctx, []*device.Buffer{xi}, slices.Repeat([]float64{1}, rows), scale, 1)
}

// move replaces x by Σ_j P_j(α_j x + Σ_i β_ji E_i) over h evaluations. The program takes as many as are kept: for those
// that are not there their coefficients are zero and x stands in.
func (t *Trajectory) move(ctx context.Context, evaluations []*device.Buffer, alpha, beta []float64, h int) error {
	m, j := t.model, t.model.J()
	p, err := m.combineProgram(ctx, t.batch, t.keep)
	if err != nil {
		return err
	}
	s := m.stage()
	defer s.release()
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
	args := append(t.args.basis(), device.Use(t.x), put(s, padded(coefficients, per, t.batch), t.batch, per))
	out, err := s.run(ctx, p, withHistory(args, evaluations, t.keep, t.x)...)
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
	if t.data && len(t.history) > 0 {
		return t.read(t.history[0], dst)
	}
	if t.denoised == nil && !t.closed {
		return inputf("dst", "must wait for an evaluation, got none yet")
	}
	return t.read(t.denoised, dst)
}

func (t *Trajectory) read(b *device.Buffer, dst []float32) error {
	if t.closed {
		return ErrClosed
	}
	if err := checkLength("dst", len(dst), t.n*t.model.Pixels()); err != nil {
		return err
	}
	return downloadPadded(b, dst)
}

// Close frees the device's memory. It may be called twice.
func (t *Trajectory) Close() {
	if t.closed {
		return
	}
	t.closed = true
	if t.args != nil {
		t.args.release()
	}
	t.coordinates.release()
	t.replace(nil)
	releaseAll(t.history)
	t.denoised.Release()
	t.weights.Release()
}
