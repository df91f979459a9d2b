package kernels

import "context"

// Trajectory is a batch of samples on its way along the probability flow. The
// state x and the last few flows stay on the device. A Trajectory belongs to
// one goroutine.
type Trajectory struct{}

// NewTrajectory starts a batch at x = latents, keeping the last history flows.
// It retains w until Close.
//
//	latents  [B, H, W, C]
//	labels   [B], −1 for none; nil for all −1
//
// Starting noise of variance g is one Combine with α_j = √g_j.
func (m *Model) NewTrajectory(ctx context.Context, w *Weights, latents []float32, labels []int32, history int) (*Trajectory, error) {
	return &Trajectory{}, nil
}

// Evaluate computes the flow at x for the noise variances g [B*J] and puts it
// in front of the history.
func (t *Trajectory) Evaluate(ctx context.Context, g []float64) error { return nil }

// Combine moves the state:
//
//	x ← Σ_j P_j( α_j x + Σ_i β_ji flow_i ),  flow_0 the newest
//
//	alpha  [B*J]
//	beta   [B*J*h], newest first, h ≤ history; nil for none
func (t *Trajectory) Combine(ctx context.Context, alpha, beta []float64) error { return nil }

// X copies the state into dst [B, H, W, C].
func (t *Trajectory) X(dst []float32) error { return nil }

// Denoised copies the denoised image of the last evaluation into dst.
func (t *Trajectory) Denoised(dst []float32) error { return nil }

// Close frees the device's memory. It may be called twice.
func (t *Trajectory) Close() {}
