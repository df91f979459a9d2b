package reading

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
)

// Model sends the files of a model back: config.json, as the server has it with every default, and
// model.safetensors as it lies in the folder. The last row is filled up with zeros.
func (k *Reader) Model(_ context.Context, req api.Model) (*api.Job, error) {
	m, err := k.Catalog.Model(req.Model)
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
	return tables.Priced(k.MaxBytes, schema, rows, func(ctx context.Context, emit func(api.Event) error) error {
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
