package reading

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// Dataset sends the images of a data set.
func (k *Reader) Dataset(_ context.Context, req api.Dataset) (*api.Job, error) {
	d, err := k.Catalog.Dataset(req.Dataset)
	if err != nil {
		return nil, err
	}
	first, n := min(req.Offset, d.Len()), d.Len()
	if n -= first; req.Limit != nil {
		n = min(*req.Limit, n)
	}
	schema := api.Schema{
		Columns: []api.Column{
			tables.ImageColumn("image", catalog.ImageType(d), d.Layout(), d.Height(), d.Width(), d.Channels()),
			{Name: "label", Type: api.Int32},
			{Name: "index", Type: api.Int64},
		},
		Metadata: tables.Metadata("Dataset", req, append(tables.Normalized(d.Normalization()), "dataset", req.Dataset)...),
	}
	return tables.Priced(k.MaxBytes, schema, int64(n), func(ctx context.Context, emit func(api.Event) error) error {
		return tables.SendInBatches(ctx, schema, n, emit, func(from, to int) ([]any, error) {
			return imageColumns(d, first+from, first+to)
		})
	})
}

func imageColumns(d *data.Dataset, from, to int) (columns []any, err error) {
	label, index := make([]int32, to-from), make([]int64, to-from)
	for i := range label {
		label[i], index[i] = d.Label(from+i), int64(from+i)
	}
	var images any
	if d.IsFloat() {
		images, err = d.Float32(from, to)
	} else {
		images, err = d.Uint8(from, to)
	}
	return []any{images, label, index}, err
}
