package client

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Sample draws images; see api.Sample for the columns.
func (c *Client) Sample(ctx context.Context, req api.Sample) Rows { return c.Get(ctx, "Sample", req) }

// SampleExchange draws images from the caller's own unit-normal latents: columns latent and label.
func (c *Client) SampleExchange(ctx context.Context, req api.Sample, in Input) Rows {
	return c.exchange(ctx, "Sample", req, in)
}

// EvaluateSchedule tabulates a schedule.
func (c *Client) EvaluateSchedule(ctx context.Context, req api.EvaluateSchedule) Rows {
	return c.Get(ctx, "EvaluateSchedule", req)
}

// TrainStep takes training steps on the run's own data set, a row for each.
func (c *Client) TrainStep(ctx context.Context, req api.TrainStep) Rows {
	return c.Get(ctx, "TrainStep", req)
}

// TrainStepExchange takes a training step on each batch sent: columns image and label.
func (c *Client) TrainStepExchange(ctx context.Context, req api.TrainStep, in Input) Rows {
	return c.exchange(ctx, "TrainStep", req, in)
}

// WatchRun follows a run's rows until it is done, cancelled or paused.
func (c *Client) WatchRun(ctx context.Context, req api.WatchRun) Rows {
	return c.Get(ctx, "WatchRun", req)
}

// Denoise evaluates a model on noisy images: columns x, label, and sigma or g.
func (c *Client) Denoise(ctx context.Context, req api.Denoise, in Input) Rows {
	return c.exchange(ctx, "Denoise", req, in)
}

// ScheduleGradient estimates the gradient of the trajectory loss with respect to a schedule: columns image, noise,
// probe, t and label. The last message's metadata carries d_logg and d_theta.
func (c *Client) ScheduleGradient(ctx context.Context, req api.ScheduleGradient, in Input) Rows {
	return c.exchange(ctx, "ScheduleGradient", req, in)
}

// BenchSchedule runs solvers on schedules on a data set's own Gaussian.
func (c *Client) BenchSchedule(ctx context.Context, req api.BenchSchedule) Rows {
	return c.Get(ctx, "BenchSchedule", req)
}

// Predict estimates how much energy each basis, and schedules per class, can save at best.
func (c *Client) Predict(ctx context.Context, req api.Predict) Rows {
	return c.Get(ctx, "Predict", req)
}

// EvaluateModel measures a model's loss by noise level.
func (c *Client) EvaluateModel(ctx context.Context, req api.EvaluateModel) Rows {
	return c.Get(ctx, "EvaluateModel", req)
}

// Dataset reads a data set back.
func (c *Client) Dataset(ctx context.Context, req api.Dataset) Rows {
	return c.Get(ctx, "Dataset", req)
}

// Basis reads the vectors of a basis back.
func (c *Client) Basis(ctx context.Context, req api.Basis) Rows { return c.Get(ctx, "Basis", req) }

// Model reads the files of a model back: config.json and model.safetensors, one after the other, in the column bytes.
func (c *Client) Model(ctx context.Context, req api.Model) Rows { return c.Get(ctx, "Model", req) }

// PutModel uploads a model folder: the column bytes. It returns the number of rows received.
func (c *Client) PutModel(ctx context.Context, req api.PutModel, in Input) (int64, error) {
	return c.Put(ctx, "PutModel", req, in)
}

// PutConditions replaces a model's table of conditions: columns label and condition. It returns the number of rows
// stored.
func (c *Client) PutConditions(ctx context.Context, req api.PutConditions, in Input) (int64, error) {
	return c.Put(ctx, "PutConditions", req, in)
}

// PutDataset uploads images and labels: columns image and, if there are any, label. It returns the number of rows
// stored.
func (c *Client) PutDataset(ctx context.Context, req api.PutDataset, in Input) (int64, error) {
	return c.Put(ctx, "PutDataset", req, in)
}

// PutSchedule uploads a schedule: columns label, subspace, t and g. It returns the number of rows stored.
func (c *Client) PutSchedule(ctx context.Context, req api.PutSchedule, in Input) (int64, error) {
	return c.Put(ctx, "PutSchedule", req, in)
}

// PutBasis uploads a basis: columns label and vector. It returns the number of rows stored.
func (c *Client) PutBasis(ctx context.Context, req api.PutBasis, in Input) (int64, error) {
	return c.Put(ctx, "PutBasis", req, in)
}

// RemoteSchedule makes a schedule for a network that the caller evaluates: each question's columns, image, label,
// noise, t, g and omega, go to answer, which returns a batch of the columns of answers, the terms that the question's
// Meta names. It returns what the end says: the schedule as it is stored.
func (c *Client) RemoteSchedule(ctx context.Context, req api.RemoteSchedule, answers api.Schema,
	answer func(question Message) (api.Batch, error),
) (api.Meta, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	given := make(chan api.Batch)
	in := Input{Schema: answers, Batches: func(yield func(api.Batch) bool) {
		for {
			select {
			case b, more := <-given:
				if !more || !yield(b) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}}
	for m, err := range c.exchange(ctx, "RemoteSchedule", req, in) {
		switch {
		case err != nil:
			return nil, err
		case m.Meta["event"] == "stored":
			close(given)
		case m.Meta["event"] == "end":
			return m.Meta, nil
		case m.Meta["terms"] != nil:
			b, err := answer(m)
			if err != nil {
				cancel()
				return nil, err
			}
			select {
			case given <- b:
			case <-ctx.Done():
			}
		}
	}
	return nil, ctx.Err()
}
