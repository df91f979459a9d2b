package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
)

func (e *Engine) readDataset(_ context.Context, req api.Dataset) (*api.Job, error) {
	d, err := e.catalog.Dataset(req.Dataset)
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
	return tables.Priced(e.cfg.MaxBytes, schema, int64(n), func(ctx context.Context, emit func(api.Event) error) error {
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

func (e *Engine) readBasis(_ context.Context, req api.Basis) (*api.Job, error) {
	b, err := e.vectorsOf(req)
	if err != nil {
		return nil, err
	}
	schema := api.Schema{
		Columns: []api.Column{
			{Name: "label", Type: api.Int32},
			{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{b.H(), b.W()}, DimNames: []string{"H", "W"}},
		},
		Metadata: tables.Metadata("Basis", req),
	}
	labels := b.Classes()
	if labels == nil {
		labels = []int{basis.Shared}
	}
	n, size := len(labels)*b.K(), b.H()*b.W()
	return tables.Priced(e.cfg.MaxBytes, schema, int64(n), func(ctx context.Context, emit func(api.Event) error) error {
		return tables.SendInBatches(ctx, schema, n, emit, func(from, to int) ([]any, error) {
			var column []int32
			var vectors, ofLabel []float64
			for i := from; i < to; i++ {
				label, first := labels[i/b.K()], i%b.K()*size
				if ofLabel == nil || first == 0 {
					if ofLabel, err = b.Vectors(label); err != nil {
						return nil, err
					}
				}
				column, vectors = append(column, int32(label)), append(vectors, ofLabel[first:first+size]...)
			}
			return []any{column, vectors}, nil
		})
	})
}

// vectorsOf finds the basis that a request means: a stored one, or the one that travels with a schedule.
func (e *Engine) vectorsOf(req api.Basis) (*basis.Basis, error) {
	if req.Basis != "" {
		return e.catalog.Basis(req.Basis)
	}
	s, err := e.catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	if s.Basis != nil {
		return s.Basis, nil
	}
	name := s.Family().Basis
	if basis.ByFormula(name) {
		return nil, api.Errorf(api.BadRequest, "The schedule %q has the basis %s, which is known by its name", s.Name, name)
	}
	return e.catalog.Basis(name)
}

// readModel reads the files of a model back: config.json, as the server has it with every default, and
// model.safetensors as it lies in the folder. The last row is filled up with zeros.
func (e *Engine) readModel(_ context.Context, req api.Model) (*api.Job, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(m.Net)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(m.WeightsFile())
	if err != nil {
		return nil, err
	}
	schema := api.Schema{
		Columns: []api.Column{{Name: "bytes", Type: api.Uint8, Kind: api.Tensor, Shape: []int{api.PartBytes}}},
		Metadata: tables.Metadata("Model", struct {
			api.Model
			ConfigBytes  int   `json:"config_bytes"`
			WeightsBytes int64 `json:"weights_bytes"`
		}{req, len(config), info.Size()}),
	}
	rows := (int64(len(config)) + info.Size() + api.PartBytes - 1) / api.PartBytes
	return tables.Priced(e.cfg.MaxBytes, schema, rows, func(ctx context.Context, emit func(api.Event) error) error {
		file, err := os.Open(m.WeightsFile())
		if err != nil {
			return err
		}
		defer file.Close()
		files := io.MultiReader(bytes.NewReader(config), file)
		return tables.SendInBatches(ctx, schema, int(rows), emit, func(from, to int) ([]any, error) {
			part := make([]byte, (to-from)*api.PartBytes)
			_, err := io.ReadFull(files, part)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return []any{part}, err
		})
	})
}
