package contents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// SendModel sends the files of a model: config.json with every default, and model.safetensors as it is on the disk. The
// last row is padded with zeros.
func (c *Contents) SendModel(_ context.Context, req api.Model) (*api.Job, error) {
	m, err := c.Catalog.Model(req.Model)
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
	return tables.NewPricedJob(c.MaxBytes, schema, rows, func(ctx context.Context, emit func(api.Event) error) error {
		file, err := os.Open(m.WeightsFile())
		if err != nil {
			return err
		}
		defer file.Close()
		files := io.MultiReader(bytes.NewReader(config), file)
		return sendInBatches(ctx, schema, int(rows), emit, func(from, to int) ([]any, error) {
			part := make([]byte, (to-from)*api.PartBytes)
			_, err := io.ReadFull(files, part)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return []any{part}, err
		})
	})
}

// sendInBatches emits rows in batches of the default size. columns returns the columns of rows from … to−1.
func sendInBatches(ctx context.Context, s api.Schema, rows int, emit func(api.Event) error,
	columns func(from, to int) ([]any, error),
) error {
	most := tables.RowsPerBatch(s, api.DefaultBatchBytes)
	for from := 0; from < rows; from += most {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+most, rows)
		cols, err := columns(from, to)
		if err != nil {
			return err
		}
		event := api.Event{Batch: &api.Batch{Rows: to - from, Cols: cols}, Meta: api.Done(int64(to), int64(rows))}
		if err := emit(event); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxConfig limits a config.json. The longest describe a network operation by operation.
	maxConfig = 32 << 20
	// modelCost is the number of bytes for each byte of an uploaded model: the file, and the values of a tensor, which may
	// be the whole file.
	modelCost = 2
)

// PutModel opens the upload of a model. Its weights are written to the disk as they come. Memory holds config.json
// until it is complete, and then one tensor at a time.
func (c *Contents) PutModel(_ context.Context, req api.PutModel, in api.Schema) (*api.Upload, error) {
	if err := tables.CheckColumns(in, []api.Column{{Name: "bytes", Type: api.Uint8, Kind: api.Tensor}}, nil); err != nil {
		return nil, err
	}
	if n := in.Columns[0].Len(); n != api.PartBytes {
		return nil, api.Errorf(api.BadTensor, "Column \"bytes\" must have %d bytes a row, got %d", api.PartBytes, n)
	}
	if req.ConfigBytes > maxConfig {
		return nil, api.Errorf(api.TooLarge, "config_bytes must be at most %d, got %d", maxConfig, req.ConfigBytes)
	}
	if req.WeightsBytes > c.MaxUploadBytes-req.ConfigBytes { // before a byte comes
		return nil, errTooLong(c.MaxUploadBytes)
	}
	var rows int64
	var config []byte
	var files *checkpoint.ModelWriter // nil until config.json is whole
	missing := req.WeightsBytes
	want := (req.ConfigBytes + req.WeightsBytes + api.PartBytes - 1) / api.PartBytes
	mismatch := func() error {
		return api.Errorf(api.BadTensor, "Files of %d and %d bytes are %d rows, got %d", req.ConfigBytes,
			req.WeightsBytes, want, rows)
	}
	write := func(b api.Batch) (err error) {
		if rows += int64(b.Rows); rows > want {
			return mismatch()
		}
		bytes := api.ColumnOf[uint8](in, b, "bytes")
		if files == nil {
			n := min(int64(len(bytes)), req.ConfigBytes-int64(len(config)))
			config, bytes = append(config, bytes[:n]...), bytes[n:]
			if int64(len(config)) < req.ConfigBytes {
				return nil
			}
			if files, err = c.Catalog.CreateModel(req.Name, config, req.WeightsBytes); err != nil {
				return badModel(err)
			}
			config = nil
		}
		bytes = bytes[:min(int64(len(bytes)), missing)] // the last row is padded
		missing -= int64(len(bytes))
		_, err = files.Write(bytes)
		return badModel(err)
	}
	commit := func() (int64, error) {
		if rows != want {
			return 0, mismatch()
		}
		return rows, badModel(c.Catalog.PlaceModel(req.Name, files, req.Replace))
	}
	abort := func() {
		if files != nil {
			files.Abort()
		}
	}
	upload := api.Upload{Write: write, Commit: commit, Abort: abort}
	return c.limitedUpload(upload, in, req.Rows, c.MaxUploadBytes, modelCost),
		c.Catalog.FreeModel(req.Name, req.Replace)
}

// badModel returns BAD_MODEL for an error of the files, and any other error as it is.
func badModel(err error) error {
	var config *nn.ConfigError
	var file *checkpoint.Error
	switch {
	case errors.As(err, &config):
		return api.Errorf(api.BadModel, "The model cannot be used: %w", err)
	case errors.As(err, &file):
		return api.Errorf(api.BadModel, "The weights do not fit the network: %w", err)
	}
	return err
}
