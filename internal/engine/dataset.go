package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/train/data"
)

// prepareDataset reads a data set back.
func (e *Engine) prepareDataset(_ context.Context, req api.Dataset) (*api.Job, error) {
	d, err := e.catalog.Dataset(req.Dataset)
	if err != nil {
		return nil, err
	}
	from, to := min(req.Offset, d.Len()), d.Len()
	if req.Limit != nil {
		to = from + min(*req.Limit, to-from)
	}
	schema := datasetSchema(d)
	said := append(reply.Normalized(d.Normalization()), "dataset", req.Dataset)
	schema.Metadata = reply.Metadata("Dataset", req, said...)
	bytes, err := e.price(schema, int64(to-from))
	if err != nil {
		return nil, err
	}
	return &api.Job{
		Schema: schema, Rows: int64(to - from), Bytes: bytes,
		Run: func(ctx context.Context, emit func(api.Event) error) error {
			most := reply.RowsPerBatch(schema, api.DefaultBatchBytes)
			for i := from; i < to; i += most {
				if err := ctx.Err(); err != nil {
					return err
				}
				end := min(i+most, to)
				batch, err := datasetRows(d, i, end)
				if err != nil {
					return err
				}
				if err := emit(api.Event{Batch: batch, Meta: api.Done(int64(end-from), int64(to-from))}); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

func datasetSchema(d *data.Dataset) api.Schema {
	return api.Schema{Columns: []api.Column{
		input.ImageColumn("image", catalog.ImageType(d), d.Layout(), d.Height(), d.Width(), d.Channels()),
		{Name: "label", Type: api.Int32},
		{Name: "index", Type: api.Int64},
	}}
}

// datasetRows makes the columns of images from … to−1.
func datasetRows(d *data.Dataset, from, to int) (*api.Batch, error) {
	label, index := make([]int32, to-from), make([]int64, to-from)
	for i := range label {
		label[i], index[i] = d.Label(from+i), int64(from+i)
	}
	var images any
	var err error
	if d.IsFloat() {
		images, err = d.Float32(from, to)
	} else {
		images, err = d.Uint8(from, to)
	}
	return &api.Batch{Rows: to - from, Cols: []any{images, label, index}}, err
}
