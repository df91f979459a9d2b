package train

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// Step takes the next batch of the data set through one step.
//
// After an error before the step the run has not changed. A *[DivergedError] comes with the row of a step that has been
// taken.
func (r *Run) Step(ctx context.Context) (Row, error) {
	n := r.cfg.Batch
	images, labels := make([]float32, n*r.data.Pixels()), make([]int32, n)
	if err := r.order.Batch(r.data, r.position, images, labels); err != nil {
		return Row{}, err
	}
	row, err := r.advance(ctx, images, labels)
	if row.Step > 0 {
		r.position += uint64(n)
	}
	return row, err
}

// StepOn takes a caller's batch through one step. The position in the data set does not change.
//
//	images  [B, H, W, C] in [−1, 1], or in the data set's units if it has a normalization; they are overwritten
//	labels  [B], −1 for none; nil for all −1
//
// An image that the data set could not hold is a *data.Error. Every new batch size costs one compilation.
func (r *Run) StepOn(ctx context.Context, images []float32, labels []int32) (Row, error) {
	n := len(images) / r.model.Pixels()
	if n == 0 || len(images) != n*r.model.Pixels() || labels != nil && len(labels) != n {
		return Row{}, &data.Error{Row: -1, Msg: "a batch must be a whole number of images with a label each"}
	}
	for i := range n {
		if err := r.data.CheckHWC(i, images[i*r.model.Pixels():(i+1)*r.model.Pixels()]); err != nil {
			return Row{}, err
		}
	}
	r.data.Normalization().Forward(images)
	return r.advance(ctx, images, labels)
}

// advance is StepOn without a check of the images.
func (r *Run) advance(ctx context.Context, images []float32, labels []int32) (Row, error) {
	if err := r.measureStart(ctx); err != nil {
		return Row{}, err
	}
	b, err := r.draw(len(images)/r.model.Pixels(), labels)
	if err != nil {
		return Row{}, err
	}
	return r.learner.advance(b, func(row *Row) (kernels.StepOutput, error) {
		in := kernels.StepInput{
			Images: images, Labels: labels, G: b.g, Omega: b.omega, Seed: r.cfg.Seed, Step: row.Step,
			Clip: r.cfg.Clip, Part: r.cfg.Microbatch, NetworkG: b.network,
		}
		if *r.cfg.TrainNetwork {
			from := float64(r.seen) / 1000
			row.LR = r.cfg.networkRamp().At(from, row.Kimg)
			in.LR, in.EMABeta = row.LR, math.Pow(0.5, (row.Kimg-from)/r.cfg.halflife(from))
		}
		r.initial = nil
		out, err := r.trainer.Step(ctx, in)
		if err == nil && *r.cfg.TrainNetwork {
			row.GradNorm = out.GradNorm
		}
		return out, err
	})
}

// measureStart replaces the schedule by the geodesic before the first step of a run that starts from it.
func (r *Run) measureStart(ctx context.Context) error {
	if r.cfg.Init != initGeodesic || r.step > 0 || r.measured {
		return nil
	}
	w, err := r.trainer.Publish(ctx)
	if err != nil {
		return err
	}
	defer w.Release()
	geodesic, err := passes.MakeGeodesic(ctx, r.model, w, r.data, r.startSettings())
	if err != nil {
		return err
	}
	return r.startAt(geodesic)
}
