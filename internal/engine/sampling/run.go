package sampling

import (
	"context"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/data"
)

// draw returns row i of the request and draws its latent from its seed, and its label if the request has none.
func (s *sampling) draw(i int, x []float32) sampler.Row {
	seed := s.req.Seed + uint64(i) // modulo 2⁶⁴, as the contract says
	r := sampler.Row{Index: int64(s.req.Offset + i), Seed: seed, Label: -1}
	switch {
	case s.req.Labels != nil:
		r.Label = s.req.Labels[i]
	case s.classes() > 0:
		r.Label = s.model.DrawLabel(seed)
	}
	sampler.DrawLatent(seed, x)
	return r
}

// run samples n rows. draw returns row i and fills in its latent.
func (s *sampling) run(
	ctx context.Context, n int, draw func(i int, x []float32) sampler.Row, emit func(api.Event) error,
) error {
	out := &sampleWriter{s: s, total: n, emit: emit}
	follower := sampler.Sampler{
		Device: s.sampler.Batcher, Network: sampler.Network{Model: s.network, Weights: s.model.Weights()}, Start: s.start,
		Guide: s.guide,
	}
	source := func(i int, x []float32) (sampler.Row, *solver.Plan, error) {
		row := draw(i, x)
		plan, err := s.planFor(row.Label)
		return row, plan, err
	}
	err := follower.Follow(ctx, n, source, sampler.Watch{
		Stage: func(b *sampler.Batch, stage int, t *kernels.Trajectory) error { return s.report(b, stage, t, out) },
		Every: s.req.Every > 0, // previews of all
		Done: func(b *sampler.Batch) error {
			return out.final(b.Rows, b.Samples, s.guide.Evaluations(b.Plans[0], b.Plans[0].NFE))
		},
	})
	if err != nil {
		return err
	}
	if err = out.flush(); err != nil || out.bad == 0 {
		return err
	}
	return emit(api.Event{Meta: api.NotFiniteWarning(out.bad, n)})
}

// report sends previews and progress after a stage that ends a step.
func (s *sampling) report(b *sampler.Batch, stage int, t *kernels.Trajectory, out *sampleWriter) error {
	if stage < 0 || b.Plans[0].Stages[stage].Step < 0 {
		return nil
	}
	step := b.Plans[0].Stages[stage].Step
	progress := api.Progress(step+1, s.plan.Steps(), "done", out.done, "total", out.total)
	if s.req.Every > 0 && step%s.req.Every == 0 {
		denoised, err := b.Denoised(t)
		if err != nil {
			return err
		}
		nfe := s.guide.Evaluations(b.Plans[0], stage+1)
		if err := out.send(b.Rows, denoised, int32(step), int32(nfe), progress); err != nil {
			return err
		}
	}
	if now := time.Now(); now.Sub(out.last) >= api.ProgressEvery {
		out.last = now
		return out.emit(api.Event{Meta: progress})
	}
	return nil
}

// sampleWriter collects rows and sends them in batches of about the requested size. It sends previews at once.
type sampleWriter struct {
	s     *sampling
	emit  func(api.Event) error
	total int
	done  int // samples finished
	bad   int // of them, not finite
	rows  []sampler.Row
	nfe   int32
	data  []float32 // the finished samples that wait, HWC
	last  time.Time // of the latest progress
}

// final takes finished samples. It sends them once they fill a batch, or at once if there are previews.
func (o *sampleWriter) final(rows []sampler.Row, images []float32, nfe int) error {
	o.bad += tables.NotFinite(images, o.s.h*o.s.w*o.s.c)
	o.rows = append(o.rows, rows...)
	o.data = append(o.data, images...)
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
func (o *sampleWriter) send(rows []sampler.Row, images []float32, step, nfe int32, meta api.Meta) error {
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

func (s *sampling) columns(rows []sampler.Row, images []float32, step, nfe int32) *api.Batch {
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
