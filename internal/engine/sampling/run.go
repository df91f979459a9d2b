package sampling

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// drawn returns sample i of the request and draws its latent: from its seed, with its label, drawn too if none is
// given.
func (s *sampling) drawn(i int, x []float32) batch.Row {
	seed := s.req.Seed + uint64(i) // modulo 2⁶⁴, as the contract says
	r := batch.Row{Index: int64(s.req.Offset + i), Seed: seed, Label: -1}
	switch {
	case s.req.Labels != nil:
		r.Label = s.req.Labels[i]
	case s.classes() > 0:
		r.Label = latent.Label(seed, s.classes())
	}
	latent.Normal(seed, latent.StreamLatent, x)
	return r
}

// bucket is a number of rows that are evaluated in one batch, with their plans and their latents, padded.
type bucket struct {
	rows    []batch.Row
	plans   []*solver.Plan
	latents []float32
	samples []float32
}

// run takes n rows to samples, bucket by bucket. source returns row i and fills in its latent. Unless previews are
// wanted, as many buckets are under way at a time as there are devices.
func (s *sampling) run(
	ctx context.Context, n int, source func(i int, x []float32) batch.Row, emit func(api.Event) error,
) error {
	out := newSampleWriter(s, n, emit)
	atOnce := len(s.on.Device().Peers())
	if s.req.Every > 0 {
		atOnce = 1
	}
	size := s.h * s.w * s.c
	for done := 0; done < n; {
		var buckets []bucket
		for len(buckets) < atOnce && done < n {
			room := batch.BucketFor(s.on, n-done)
			b := bucket{latents: make([]float32, room*size)}
			for i := range min(room, n-done) {
				row := source(done+i, b.latents[i*size:(i+1)*size])
				plan, err := s.planFor(row.Label)
				if err != nil {
					return err
				}
				b.rows, b.plans = append(b.rows, row), append(b.plans, plan)
			}
			buckets, done = append(buckets, b), done+len(b.rows)
		}
		if err := s.runBuckets(ctx, buckets, out); err != nil {
			return err
		}
	}
	return out.flush()
}

// runBuckets takes buckets to their samples at the same time, and hands previews and samples to out. The first bucket
// reports the progress.
func (s *sampling) runBuckets(ctx context.Context, buckets []bucket, out *sampleWriter) error {
	net := batch.Network{On: s.on, Weights: s.model.Weights()}
	var start batch.Start
	if s.start != nil {
		start = s.start
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for k := range buckets {
		b := &buckets[k]
		after := func(stage int, t *kernels.Trajectory) error {
			if k > 0 {
				return nil
			}
			return s.report(b, stage, t, out)
		}
		group.Go(func() error {
			return safely.Do(func() (err error) {
				b.samples, err = s.by.Batcher.Follow(
					groupCtx, net, b.rows, b.plans, b.latents, start, s.guide.Held(), after)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, b := range buckets {
		if err := out.final(b.rows, b.samples, s.guide.Evaluations(b.plans[0], b.plans[0].NFE)); err != nil {
			return err
		}
	}
	return nil
}

// report hands out the preview and the progress after a stage that ends a step.
func (s *sampling) report(b *bucket, stage int, t *kernels.Trajectory, out *sampleWriter) error {
	step := b.plans[0].Stages[stage].Step
	if step < 0 {
		return nil
	}
	if s.req.Every > 0 && step%s.req.Every == 0 {
		denoised := make([]float32, len(b.latents))
		if err := t.Denoised(denoised); err != nil {
			return err
		}
		if err := out.preview(b.rows, denoised, step, s.guide.Evaluations(b.plans[0], stage+1)); err != nil {
			return err
		}
	}
	return out.progress(step+1, s.steps)
}
