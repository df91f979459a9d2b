package batch

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Ensemble is a number of latents that are followed again and again, by one sampler after the other.
type Ensemble struct {
	batcher *Batcher
	net     Network
	Rows    []Row
	Start   Start  // of every trajectory; nil for noise alone
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

// Basis returns the basis of the network's noise.
func (e *Ensemble) Basis() *basis.Basis { return e.net.On.Basis() }

// Pixels returns the number of values of an image.
func (e *Ensemble) Pixels() int { return e.net.On.Pixels() }

// Sample follows one plan, whatever the label.
func (e *Ensemble) Sample(ctx context.Context, p *solver.Plan) ([]float32, error) {
	return e.Along(ctx, func(int32) (*solver.Plan, error) { return p, nil }, nil)
}

// Along returns the samples of each row along the plan of its label. after, which may be nil, sees every stage of every
// batch, with the latents of the batch, or what Start has made of them, and the number of its rows.
func (e *Ensemble) Along(ctx context.Context, plan func(label int32) (*solver.Plan, error),
	after func(stage int, latents []float32, rows int, t *kernels.Trajectory) error,
) ([]float32, error) {
	size := e.net.On.Pixels()
	out := make([]float32, 0, len(e.Rows)*size)
	for rest := e.Rows; len(rest) > 0; {
		bucket := BucketFor(e.net.On, len(rest))
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

// States returns the states at which the rows start along the plans of their labels.
func (e *Ensemble) States(plan func(label int32) (*solver.Plan, error)) ([]float32, error) {
	size := e.net.On.Pixels()
	out := make([]float32, len(e.Rows)*size)
	for i, r := range e.Rows {
		p, err := plan(r.Label)
		if err != nil {
			return nil, err
		}
		x := out[i*size : (i+1)*size]
		latent.Normal(r.Seed, latent.StreamLatent, x)
		if e.Start != nil {
			err = e.Start.Draw(r.Label, p, x)
		} else {
			err = scale(e.net.On.Basis(), int(r.Label), p.Init, x)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scale replaces an image [H, W, C] by Σ_j init_j P_j x.
func scale(b *basis.Basis, label int, init []float64, x []float32) error {
	if !slices.ContainsFunc(init, func(v float64) bool { return v != init[0] }) {
		for i, v := range x {
			x[i] = float32(init[0] * float64(v))
		}
		return nil
	}
	planes := b.H() * b.W()
	channels := len(x) / planes
	plane, parts := make([]float64, planes), make([][]float64, b.J())
	for j := range parts {
		parts[j] = make([]float64, planes)
	}
	for c := range channels {
		for i := range plane {
			plane[i] = float64(x[i*channels+c])
		}
		if err := b.Split(label, plane, parts); err != nil {
			return err
		}
		for i := range plane {
			var sum float64
			for j, part := range parts {
				sum += init[j] * part[i]
			}
			x[i*channels+c] = float32(sum)
		}
	}
	return nil
}
