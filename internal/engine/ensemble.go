package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// ensemble is a number of latents that are followed again and again, by one sampler after the other.
type ensemble struct {
	flow
	rows []row
}

// ensemble gives the latents of seed … seed+n−1, with labels drawn from them for a conditional model.
func (e *Engine) ensemble(on *kernels.Model, m *model, seed uint64, n int) *ensemble {
	out := &ensemble{flow: flow{joint: e.joint, on: on, model: m}, rows: make([]row, n)}
	for i := range out.rows {
		out.rows[i] = row{seed: seed + uint64(i), label: -1}
		if classes := m.shape.Labels; classes > 0 {
			out.rows[i].label = latent.Label(out.rows[i].seed, classes)
		}
	}
	return out
}

// sample follows one plan, whatever the label.
func (e *ensemble) sample(ctx context.Context, p *solver.Plan) ([]float32, error) {
	return e.along(ctx, func(int32) (*solver.Plan, error) { return p, nil }, nil)
}

// along gives the samples of each row along the plan of its label. after, which may be nil, sees every stage of every batch,
// with the latents of the batch and the number of its rows.
func (e *ensemble) along(ctx context.Context, plan func(label int32) (*solver.Plan, error), after func(stage int, latents []float32, rows int, t *kernels.Trajectory) error) ([]float32, error) {
	size := e.on.Pixels()
	out := make([]float32, 0, len(e.rows)*size)
	for rest := e.rows; len(rest) > 0; {
		bucket := bucketFor(e.on, len(rest))
		rows := rest[:min(bucket, len(rest))]
		rest = rest[len(rows):]
		plans, latents := make([]*solver.Plan, len(rows)), make([]float32, bucket*size)
		for i, r := range rows {
			var err error
			if plans[i], err = plan(r.label); err != nil {
				return nil, err
			}
			latent.Normal(r.seed, latent.StreamLatent, latents[i*size:(i+1)*size])
		}
		var watch func(stage int, t *kernels.Trajectory) error
		if after != nil {
			watch = func(stage int, t *kernels.Trajectory) error { return after(stage, latents, len(rows), t) }
		}
		x, err := e.follow(ctx, rows, plans, latents, watch)
		if err != nil {
			return nil, err
		}
		out = append(out, x[:len(rows)*size]...)
	}
	return out, nil
}
