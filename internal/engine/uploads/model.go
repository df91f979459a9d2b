package uploads

import (
	"context"
	"errors"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

const (
	// maxConfig bounds a config.json, which is the longest for a network that it describes operation by operation.
	maxConfig = 32 << 20
	// modelCost is the number of bytes that the upload takes for each one on the wire: the file, and the values of a
	// tensor, which may be all of the file.
	modelCost = 2
)

// Model opens the upload of a model, whose files are written to the disk as they come: config.json is held until it is
// whole, and one tensor of the weights.
func (u *Uploads) Model(_ context.Context, req api.PutModel, in api.Schema) (*api.Upload, error) {
	if err := tables.CheckColumns(in, []api.Column{{Name: "bytes", Type: api.Uint8, Kind: api.Tensor}}, nil); err != nil {
		return nil, err
	}
	if n := in.Columns[0].Len(); n != api.PartBytes {
		return nil, api.Errorf(api.BadTensor, "Column \"bytes\" must have %d bytes a row, got %d", api.PartBytes, n)
	}
	if req.ConfigBytes > maxConfig {
		return nil, api.Errorf(api.TooLarge, "config_bytes must be at most %d, got %d", maxConfig, req.ConfigBytes)
	}
	if req.WeightsBytes > u.MaxBytes-req.ConfigBytes { // before a byte comes
		return nil, exceeded(u.MaxBytes)
	}
	var rows int64
	var config []byte
	var files *checkpoint.ModelWriter // nil until config.json is whole
	missing := req.WeightsBytes
	want := (req.ConfigBytes + req.WeightsBytes + api.PartBytes - 1) / api.PartBytes
	mismatch := func() error {
		return api.Errorf(api.BadTensor, "The files of %d and %d bytes are %d rows, and %d came", req.ConfigBytes,
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
			if files, err = u.Catalog.CreateModel(req.Name, config, req.WeightsBytes); err != nil {
				return badModel(err)
			}
			config = nil
		}
		bytes = bytes[:min(int64(len(bytes)), missing)] // the last row is filled up
		missing -= int64(len(bytes))
		_, err = files.Write(bytes)
		return badModel(err)
	}
	commit := func() (int64, error) {
		if rows != want {
			return 0, mismatch()
		}
		return rows, badModel(u.Catalog.PlaceModel(req.Name, files, req.Replace))
	}
	abort := func() {
		if files != nil {
			files.Abort()
		}
	}
	return u.bound(api.Upload{Write: write, Commit: commit, Abort: abort}, in, req.Rows, u.MaxBytes, modelCost),
		u.Catalog.FreeModel(req.Name, req.Replace)
}

// badModel says what of the files cannot be used, in the words of the package that reads them. Other errors stay.
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
