package sampling

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/data"
)

// draw returns sample i of the request and draws its latent: from its seed, with its label, drawn too if none is given.
func (s *sampling) draw(i int, x []float32) batch.Row {
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
	out := &sampleWriter{s: s, total: n, emit: emit}
	atOnce := len(s.network.Device().Peers())
	if s.req.Every > 0 {
		atOnce = 1
	}
	size := s.h * s.w * s.c
	for done := 0; done < n; {
		var buckets []bucket
		for len(buckets) < atOnce && done < n {
			room := batch.BucketFor(s.network, n-done)
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
	net := batch.Network{Model: s.network, Weights: s.model.Weights()}
	group, groupCtx := errgroup.WithContext(ctx)
	for k := range buckets {
		b := &buckets[k]
		var after func(stage int, t *kernels.Trajectory) error
		if k == 0 {
			after = func(stage int, t *kernels.Trajectory) error { return s.report(b, stage, t, out) }
		}
		group.Go(func() error {
			return safely.Do(func() (err error) {
				b.samples, err = s.sampler.Batcher.Follow(
					groupCtx, net, b.rows, b.plans, b.latents, s.start, s.guide.Held(), after)
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
	progress := api.Progress(step+1, s.plan.Steps(), "done", out.done, "total", out.total)
	if s.req.Every > 0 && step%s.req.Every == 0 {
		denoised := make([]float32, len(b.latents))
		if err := t.Denoised(denoised); err != nil {
			return err
		}
		nfe := s.guide.Evaluations(b.plans[0], stage+1)
		if err := out.send(b.rows, denoised, int32(step), int32(nfe), progress); err != nil {
			return err
		}
	}
	if now := time.Now(); now.Sub(out.last) >= api.ProgressEvery {
		out.last = now
		return out.emit(api.Event{Meta: progress})
	}
	return nil
}

// sampleWriter collects rows and sends them in batches of about the requested size; previews leave at once.
type sampleWriter struct {
	s     *sampling
	emit  func(api.Event) error
	total int
	done  int // samples finished
	rows  []batch.Row
	nfe   int32
	data  []float32 // the finished samples that wait, HWC
	last  time.Time // of the latest progress
}

// final takes finished samples. They wait for more unless there are enough to send, or someone is watching previews.
func (o *sampleWriter) final(rows []batch.Row, images []float32, nfe int) error {
	size := o.s.h * o.s.w * o.s.c
	o.rows = append(o.rows, rows...)
	o.data = append(o.data, images[:len(rows)*size]...)
	o.nfe = int32(nfe)
	if o.s.req.Every > 0 || len(o.rows) >= tables.RowsPerBatch(o.s.schema, int64(o.s.req.BatchBytes)) {
		return o.flush()
	}
	return nil
}

func (o *sampleWriter) flush() error {
	rows, data := o.rows, o.data
	o.rows, o.data = nil, nil
	return o.send(rows, data, -1, o.nfe, nil)
}

// send cuts rows into batches of at most the requested size. A nil meta counts finished samples.
func (o *sampleWriter) send(rows []batch.Row, images []float32, step, nfe int32, meta api.Meta) error {
	size := o.s.h * o.s.w * o.s.c
	most := tables.RowsPerBatch(o.s.schema, int64(o.s.req.BatchBytes))
	for len(rows) > 0 {
		n := min(most, len(rows))
		m := meta
		if m == nil {
			o.done += n
			m = api.Done(int64(o.done), int64(o.total))
		}
		if err := o.emit(api.Event{Batch: o.s.columns(rows[:n], images[:n*size], step, nfe), Meta: m}); err != nil {
			return err
		}
		rows, images = rows[n:], images[n*size:]
	}
	return nil
}

func (s *sampling) columns(rows []batch.Row, images []float32, step, nfe int32) *api.Batch {
	n := len(rows)
	index, seed, label := make([]int64, n), make([]uint64, n), make([]int32, n)
	for i, r := range rows {
		index[i], seed[i], label[i] = r.Index, r.Seed, r.Label
	}
	steps, nfes := slices.Repeat([]int32{step}, n), slices.Repeat([]int32{nfe}, n)
	return &api.Batch{Rows: n, Cols: []any{index, seed, label, steps, nfes, s.values(images)}}
}

// values turns images on the device's side, float32 HWC, into a column of the requested type and layout. Floats are in
// the units of the model's data.
func (s *sampling) values(images []float32) any {
	l := data.Layout(s.req.Layout)
	if s.req.DType == api.Uint8.String() {
		out := make([]uint8, len(images))
		data.Convert(out, images, data.HWC, l, s.h, s.w, s.c, data.ToUint8)
		return out
	}
	out := make([]float32, len(images))
	if n := s.model.Shape.Normalization; n != nil {
		images = slices.Clone(images) // the trajectory goes on with them
		n.Back(images)
	}
	data.Reorder(out, images, data.HWC, l, s.h, s.w, s.c)
	return out
}
