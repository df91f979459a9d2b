package sampling

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/anisoflight/anisoflight/base/safely"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// source returns sample i of the request: its seed and its label, drawn where none is given.
func (s *sampling) source(i int) batch.Row {
	seed := s.req.Seed + uint64(i) // modulo 2⁶⁴, as the contract says
	r := batch.Row{Index: int64(s.req.Offset + i), Seed: seed, Label: -1}
	switch {
	case s.req.Labels != nil:
		r.Label = s.req.Labels[i]
	case s.classes() > 0:
		r.Label = latent.Label(seed, s.classes())
	}
	return r
}

// runAll draws samples 0 … n−1, bucket by bucket; where nobody watches previews, as many buckets at a time as there are
// devices.
func (s *sampling) runAll(ctx context.Context, n int, emit func(api.Event) error) error {
	out := newSampleWriter(s, n, emit)
	abreast := len(s.on.Device().Peers())
	if s.req.Every > 0 {
		abreast = 1
	}
	size := s.h * s.w * s.c
	for done := 0; done < n; {
		var parts []bucket
		for len(parts) < abreast && done < n {
			room := batch.BucketFor(s.on, n-done)
			b := bucket{rows: make([]batch.Row, min(room, n-done)), latents: make([]float32, room*size)}
			for i := range b.rows {
				b.rows[i] = s.source(done + i)
				latent.Normal(b.rows[i].Seed, latent.StreamLatent, b.latents[i*size:(i+1)*size])
			}
			parts, done = append(parts, b), done+len(b.rows)
		}
		if err := s.runAbreast(ctx, parts, out); err != nil {
			return err
		}
	}
	return out.flush()
}

// bucket is a number of rows with their latents, padded.
type bucket struct {
	rows    []batch.Row
	latents []float32
	plans   []*solver.Plan
	images  []float32 // the samples
}

// runAbreast is runBatch for several buckets at a time. The first reports the progress.
func (s *sampling) runAbreast(ctx context.Context, parts []bucket, out *sampleWriter) (err error) {
	if len(parts) == 1 {
		return s.runBatch(ctx, parts[0].rows, parts[0].latents, out)
	}
	for k := range parts {
		if parts[k].plans, err = s.plansFor(parts[k].rows); err != nil {
			return err
		}
	}
	group, within := errgroup.WithContext(ctx)
	for k := range parts {
		b := &parts[k]
		group.Go(func() error {
			return safely.Do(func() (err error) {
				b.images, err = s.follow(within, *b, func(stage int, _ *kernels.Trajectory) error {
					if step := b.plans[0].Stages[stage].Step; k == 0 && step >= 0 {
						return out.progress(step+1, s.steps)
					}
					return nil
				})
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, b := range parts {
		if err := out.final(b.rows, b.images, s.guide.Evaluations(b.plans[0], b.plans[0].NFE)); err != nil {
			return err
		}
	}
	return nil
}

// plansFor returns the plan of each row.
func (s *sampling) plansFor(rows []batch.Row) ([]*solver.Plan, error) {
	plans := make([]*solver.Plan, len(rows))
	for i, r := range rows {
		var err error
		if plans[i], err = s.planFor(r.Label); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// follow takes a bucket to its samples.
func (s *sampling) follow(ctx context.Context, b bucket, after func(stage int, t *kernels.Trajectory) error,
) ([]float32, error) {
	net := batch.Network{On: s.on, Weights: s.model.Weights()}
	var from batch.Start
	if s.start != nil {
		from = s.start
	}
	return s.by.Batcher.Follow(ctx, net, b.rows, b.plans, b.latents, from, s.guide.Held(), after)
}

// runBatch takes rows from their latents, padded to a bucket, to samples, and hands previews and samples to out.
func (s *sampling) runBatch(ctx context.Context, rows []batch.Row, latents []float32, out *sampleWriter) error {
	plans, err := s.plansFor(rows)
	if err != nil {
		return err
	}
	b := bucket{rows: rows, latents: latents, plans: plans}
	images, err := s.follow(ctx, b, func(k int, t *kernels.Trajectory) error {
		step := plans[0].Stages[k].Step
		if step < 0 {
			return nil
		}
		if s.req.Every > 0 && step%s.req.Every == 0 {
			denoised := make([]float32, len(latents))
			if err := t.Denoised(denoised); err != nil {
				return err
			}
			if err := out.preview(rows, denoised, step, s.guide.Evaluations(plans[0], k+1)); err != nil {
				return err
			}
		}
		return out.progress(step+1, s.steps)
	})
	if err != nil {
		return err
	}
	return out.final(rows, images, s.guide.Evaluations(plans[0], plans[0].NFE))
}
