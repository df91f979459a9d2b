package batch

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Ensemble is a number of latents that are followed again and again, by one sampler after the other.
type Ensemble struct {
	batcher *Batcher
	net     Network
	Rows    []Row
	Start   *Start // of every trajectory; nil for noise alone
	Guide   *Guide // of every trajectory; nil for none
}

// Ensemble returns the latents of seed … seed+n−1, with labels drawn from them for a conditional network.
func (b *Batcher) Ensemble(net Network, classes int, seed uint64, n int) *Ensemble {
	out := &Ensemble{batcher: b, net: net, Rows: make([]Row, n)}
	for i := range out.Rows {
		out.Rows[i] = Row{Seed: seed + uint64(i), Label: -1}
		if classes > 0 {
			out.Rows[i].Label = latent.Label(out.Rows[i].Seed, classes)
		}
	}
	return out
}

// Pixels returns the number of values of an image.
func (e *Ensemble) Pixels() int { return e.net.Model.Pixels() }

// Sample follows one plan, whatever the label.
func (e *Ensemble) Sample(ctx context.Context, p *solver.Plan) ([]float32, error) {
	return e.Along(ctx, func(int32) (*solver.Plan, error) { return p, nil }, nil)
}

// Along returns the samples of each row along the plan of its label. after, which may be nil, sees every stage of every
// batch, with the latents of the batch, or what Start has made of them, and the number of its rows.
func (e *Ensemble) Along(ctx context.Context, plan func(label int32) (*solver.Plan, error),
	after func(stage int, latents []float32, rows int, t *kernels.Trajectory) error,
) ([]float32, error) {
	size := e.net.Model.Pixels()
	out := make([]float32, 0, len(e.Rows)*size)
	for rest := e.Rows; len(rest) > 0; {
		bucket := BucketFor(e.net.Model, len(rest))
		rows := rest[:min(bucket, len(rest))]
		rest = rest[len(rows):]
		plans, latents := make([]*solver.Plan, len(rows)), make([]float32, bucket*size)
		for i, r := range rows {
			var err error
			if plans[i], err = plan(r.Label); err != nil {
				return nil, err
			}
			latent.Normal(r.Seed, latent.StreamLatent, latents[i*size:(i+1)*size])
		}
		var watch func(stage int, t *kernels.Trajectory) error
		if after != nil {
			watch = func(stage int, t *kernels.Trajectory) error { return after(stage, latents, len(rows), t) }
		}
		x, err := e.batcher.Follow(ctx, e.net, rows, plans, latents, e.Start, e.Guide, watch)
		if err != nil {
			return nil, err
		}
		out = append(out, x[:len(rows)*size]...)
	}
	return out, nil
}

// States returns the states at which the rows start along a plan in one subspace.
func (e *Ensemble) States(p *solver.Plan) ([]float32, error) {
	size := e.net.Model.Pixels()
	out := make([]float32, len(e.Rows)*size)
	for i, r := range e.Rows {
		x := out[i*size : (i+1)*size]
		latent.Normal(r.Seed, latent.StreamLatent, x)
		if e.Start != nil {
			if err := e.Start.Draw(r.Label, p, x); err != nil {
				return nil, err
			}
			continue
		}
		for k, v := range x {
			x[k] = float32(p.Init[0] * float64(v))
		}
	}
	return out, nil
}
