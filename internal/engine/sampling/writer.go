package sampling

import (
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/train/data"
)

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

func newSampleWriter(s *sampling, total int, emit func(api.Event) error) *sampleWriter {
	return &sampleWriter{s: s, emit: emit, total: total}
}

// preview sends the denoised estimates after a step.
func (o *sampleWriter) preview(rows []batch.Row, images []float32, step, nfe int) error {
	meta := api.Progress(step+1, o.s.steps, "done", o.done, "total", o.total)
	return o.send(rows, images, int32(step), int32(nfe), meta)
}

// progress reports a step, unless it reported another a moment ago.
func (o *sampleWriter) progress(step, steps int) error {
	if now := time.Now(); now.Sub(o.last) >= api.ProgressEvery {
		o.last = now
		return o.emit(api.Event{Meta: api.Progress(step, steps, "done", o.done, "total", o.total)})
	}
	return nil
}

// final takes finished samples. They wait for more unless there are enough to send, or someone is watching previews.
func (o *sampleWriter) final(rows []batch.Row, images []float32, nfe int) error {
	size := o.s.h * o.s.w * o.s.c
	o.rows = append(o.rows, rows...)
	o.data = append(o.data, images[:len(rows)*size]...)
	o.nfe = int32(nfe)
	if o.s.req.Every > 0 || len(o.rows) >= reply.RowsPerBatch(o.s.schema, int64(o.s.req.BatchBytes)) {
		return o.flush()
	}
	return nil
}

// flush sends what waits.
func (o *sampleWriter) flush() error {
	if len(o.rows) == 0 {
		return nil
	}
	rows, data := o.rows, o.data
	o.rows, o.data = nil, nil
	return o.send(rows, data, -1, o.nfe, nil)
}

// send cuts rows into batches of at most the requested size. A nil meta counts finished samples.
func (o *sampleWriter) send(rows []batch.Row, images []float32, step, nfe int32, meta api.Meta) error {
	size := o.s.h * o.s.w * o.s.c
	most := reply.RowsPerBatch(o.s.schema, int64(o.s.req.BatchBytes))
	for len(rows) > 0 {
		n := min(most, len(rows))
		m := meta
		if m == nil {
			o.done += n
			m = api.Done(int64(o.done), int64(o.total))
		}
		if err := o.emit(api.Event{Batch: o.s.batch(rows[:n], images[:n*size], step, nfe), Meta: m}); err != nil {
			return err
		}
		rows, images = rows[n:], images[n*size:]
	}
	return nil
}

// batch makes the columns of the reply.
func (s *sampling) batch(rows []batch.Row, images []float32, step, nfe int32) *api.Batch {
	n := len(rows)
	index, seed := make([]int64, n), make([]uint64, n)
	label, steps, nfes := make([]int32, n), make([]int32, n), make([]int32, n)
	for i, r := range rows {
		index[i], seed[i], label[i], steps[i], nfes[i] = r.Index, r.Seed, r.Label, step, nfe
	}
	col := s.schema.Columns[len(s.schema.Columns)-1]
	return &api.Batch{Rows: n, Cols: []any{
		index, seed, label, steps, nfes,
		imageValues(images, col.Type, data.Layout(s.req.Layout), s.h, s.w, s.c, s.model.Shape.Normalization),
	}}
}

// imageValues turns images on the device's side, float32 HWC, into a column of the requested type and layout, of
// floats in the units that normalization maps from.
func imageValues(images []float32, t api.Type, l data.Layout, h, w, c int, n *normalization.Affine) any {
	if t == api.Float32 {
		out := make([]float32, len(images))
		if n != nil {
			images = slices.Clone(images) // the trajectory goes on with them
			n.Back(images)
		}
		data.Reorder(out, images, data.HWC, l, h, w, c)
		return out
	}
	out := make([]uint8, len(images))
	data.Convert(out, images, data.HWC, l, h, w, c, data.ToUint8)
	return out
}
