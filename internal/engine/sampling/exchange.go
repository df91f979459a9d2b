package sampling

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/train/data"
)

// Exchange samples from the caller's own latents.
func (k *Sampler) Exchange(req api.Sample, in api.Schema) (*api.Exchange, error) {
	if err := req.CheckExchange(); err != nil {
		return nil, err
	}
	err := input.Want(in, []api.Column{
		{Name: "latent", Type: api.Float32, Kind: api.Tensor},
		{Name: "label", Type: api.Int32},
	}, nil)
	if err != nil {
		return nil, err
	}
	s, err := k.newSampling(req)
	if err != nil {
		return nil, err
	}
	col := in.Columns[in.Index("latent")]
	from, err := input.Fits(s.model, col)
	if err != nil {
		return nil, err
	}
	if first := drawable(s.classes())[:1]; s.planAll(first) == nil { // what fails is refused where the labels come
		if err := s.note(first[0]); err != nil {
			return nil, err
		}
	}
	release, err := s.guide.Hold(s.model)
	if err != nil {
		return nil, err
	}
	received := 0
	return &api.Exchange{
		Out: s.schema, Window: reply.Window, BatchBytes: int64(req.BatchBytes), Close: release,
		Do: func(ctx context.Context, batch api.Batch, emit func(api.Event) error) error {
			labels, err := input.Int32s(in, batch, "label", int64(received))
			if err != nil {
				return err
			}
			latents := api.ColumnOf[float32](in, batch, "latent")
			if err := input.Finite("latent", latents, col.Len()); err != nil {
				return err
			}
			latents = data.ToHWC(latents, from, s.h, s.w, s.c)
			err = s.runLatents(ctx, received, labels, latents, emit)
			received += batch.Rows
			return err
		},
	}, nil
}

// runLatents takes one received batch to samples. Its rows count on from first.
func (s *sampling) runLatents(
	ctx context.Context, first int, labels []int32, latents []float32, emit func(api.Event) error,
) error {
	if err := input.CheckLabels(labels, s.classes()); err != nil {
		return err
	}
	if err := s.planAll(labels); err != nil {
		return err
	}
	if _, err := s.price(api.Times(int64(len(labels)), 1+s.previews())); err != nil {
		return err
	}
	size := s.h * s.w * s.c
	return s.run(ctx, len(labels), func(i int, x []float32) batch.Row {
		copy(x, latents[i*size:(i+1)*size])
		return batch.Row{Index: int64(first + i), Seed: s.req.Seed + uint64(first+i), Label: labels[i]}
	}, emit)
}
