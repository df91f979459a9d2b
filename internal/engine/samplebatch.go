package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// row is one sample on its way.
type row struct {
	index int64
	seed  uint64
	label int32
}

// Batches are padded to one of two sizes, so that two compiled programs serve every request.
const (
	smallBucket = 8
	largeBucket = 64
)

// bucketFor gives the size of the next device batch when n samples remain. Small remainders go in several small batches
// where a padded row costs as much as a true one, on a CPU; so do all where a large one would not fit the device's memory.
func bucketFor(on *kernels.Model, n int) int {
	if (n > largeBucket/2 || n > smallBucket && accelerated(on.Device())) && on.FitBatch(largeBucket) == largeBucket {
		return largeBucket
	}
	return smallBucket
}

// room gives the size of the batches that evaluations of different requests fill together.
func (e *Engine) room() int {
	switch {
	case e.cfg.Apart:
		return 0
	case accelerated(e.dev):
		return largeBucket
	}
	return smallBucket
}

// accelerated tells whether the rows of a batch are computed side by side.
func accelerated(dev *device.Device) bool { return !dev.HostVisible() }

// pad gives rows from … from+n−1 of v, per numbers each, with the last one repeated until there are bucket of them.
func pad[E any](v []E, per, from, n, bucket int) []E {
	if n == bucket {
		return v[from*per : (from+n)*per]
	}
	out := append(make([]E, 0, bucket*per), v[from*per:(from+n)*per]...)
	last := out[(n-1)*per:]
	for len(out) < bucket*per {
		out = append(out, last...)
	}
	return out
}

// runBatch takes rows from their latents, padded to a bucket, to samples, and hands previews and samples to out.
func (s *sampling) runBatch(ctx context.Context, rows []row, latents []float32, out *sampleWriter) error {
	plans := make([]*solver.Plan, len(rows))
	for i, r := range rows {
		var err error
		if plans[i], err = s.planFor(r.label); err != nil {
			return err
		}
	}
	f := flow{joint: s.e.joint, on: s.on, model: s.model}
	images, err := f.follow(ctx, rows, plans, latents, func(k int, t *kernels.Trajectory) error {
		step := plans[0].Stages[k].Step
		if step < 0 {
			return nil
		}
		if s.req.Every > 0 && step%s.req.Every == 0 {
			denoised := make([]float32, len(latents))
			if err := t.Denoised(denoised); err != nil {
				return err
			}
			if err := out.preview(rows, denoised, step, k+1); err != nil {
				return err
			}
		}
		return out.progress(step+1, s.steps)
	})
	if err != nil {
		return err
	}
	return out.final(rows, images, plans[0].NFE)
}
