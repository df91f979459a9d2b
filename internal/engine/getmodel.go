package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
)

// prepareModel reads the files of a model back: config.json, as the server has it with every default, and
// model.safetensors as it lies in the folder.
func (e *Engine) prepareModel(_ context.Context, req api.Model) (*api.Job, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(m.Net)
	if err != nil {
		return nil, err
	}
	weights := m.WeightsFile()
	info, err := os.Stat(weights)
	if err != nil {
		return nil, err
	}
	total := int64(len(config)) + info.Size()
	schema := api.Schema{
		Columns: []api.Column{{Name: "bytes", Type: api.Uint8, Kind: api.Tensor, Shape: []int{api.PartBytes}}},
		Metadata: reply.Metadata("Model", struct {
			api.Model
			ConfigBytes  int   `json:"config_bytes"`
			WeightsBytes int64 `json:"weights_bytes"`
		}{req, len(config), info.Size()}),
	}
	rows := (total + api.PartBytes - 1) / api.PartBytes
	size, err := e.price(schema, rows)
	if err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: rows, Bytes: size, Run: func(ctx context.Context,
		emit func(api.Event) error,
	) error {
		file, err := os.Open(weights)
		if err != nil {
			return err
		}
		defer file.Close()
		return parts(ctx, io.MultiReader(bytes.NewReader(config), file), schema, rows, emit)
	}}, nil
}

// parts emits what a reader has, in rows the last of which is filled up with zeros.
func parts(ctx context.Context, from io.Reader, schema api.Schema, rows int64, emit func(api.Event) error) error {
	most := reply.RowsPerBatch(schema, api.DefaultBatchBytes)
	for done := int64(0); done < rows; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(int64(most), rows-done)
		buf := make([]byte, n*api.PartBytes)
		if _, err := io.ReadFull(from, buf); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		done += n
		batch := &api.Batch{Rows: int(n), Cols: []any{buf}}
		if err := emit(api.Event{Batch: batch, Meta: api.Done(done, rows)}); err != nil {
			return err
		}
	}
	return nil
}
