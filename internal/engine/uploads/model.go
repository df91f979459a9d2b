package uploads

import (
	"errors"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// maxConfig bounds a config.json, which is the longest for a network that it describes operation by operation.
const maxConfig = 32 << 20

// modelUpload collects the files of a model folder in memory. They are read as a folder's are before one is written.
type modelUpload struct {
	catalog *catalog.Catalog
	req     api.PutModel
	in      api.Schema
	quota   quota
	files   []byte
	rows    int64
}

// Model opens the upload of a model.
func Model(c *catalog.Catalog, limit int64, req api.PutModel, in api.Schema) (api.Upload, error) {
	u := &modelUpload{catalog: c, req: req, in: in, quota: quota{limit: limit / modelCost}}
	if err := input.Want(in, []api.Column{{Name: "bytes", Type: api.Uint8, Kind: api.Tensor}}, nil); err != nil {
		return nil, err
	}
	if n := in.Columns[0].Len(); n != api.PartBytes {
		return nil, api.Errorf(api.BadTensor, "Column \"bytes\" must have %d bytes a row, got %d", api.PartBytes, n)
	}
	if req.ConfigBytes > maxConfig {
		return nil, api.Errorf(api.TooLarge, "config_bytes must be at most %d, got %d", maxConfig, req.ConfigBytes)
	}
	if req.WeightsBytes > u.quota.limit-req.ConfigBytes { // before a byte comes
		return nil, u.quota.exceeded()
	}
	return announce(u, req.Rows), c.FreeModel(req.Name, req.Replace)
}

// Write implements api.Upload.
func (u *modelUpload) Write(b api.Batch) error {
	if err := u.quota.take(u.in, b); err != nil {
		return err
	}
	if u.rows += int64(b.Rows); u.rows > u.want() {
		return u.mismatch()
	}
	u.files = append(u.files, api.ColumnOf[uint8](u.in, b, "bytes")...)
	return nil
}

// want returns the number of rows that the sizes in the request make.
func (u *modelUpload) want() int64 {
	return (u.req.ConfigBytes + u.req.WeightsBytes + api.PartBytes - 1) / api.PartBytes
}

func (u *modelUpload) mismatch() error {
	return api.Errorf(api.BadTensor, "The files of %d and %d bytes are %d rows, and %d came", u.req.ConfigBytes,
		u.req.WeightsBytes, u.want(), u.rows)
}

// Commit implements api.Upload.
func (u *modelUpload) Commit() (int64, error) {
	if u.rows != u.want() {
		return 0, u.mismatch()
	}
	split := u.req.ConfigBytes
	m, err := checkpoint.DecodeModel(u.files[:split], u.files[split:split+u.req.WeightsBytes])
	u.files = nil
	if err != nil {
		return 0, badModel(err)
	}
	if _, err := u.catalog.SaveModel(u.req.Name, u.req.Replace, m); err != nil {
		return 0, err
	}
	return u.rows, nil
}

// badModel says what of the files cannot be used, in the words of the room that reads them.
func badModel(err error) error {
	var config *nn.ConfigError
	if errors.As(err, &config) {
		return api.Errorf(api.BadModel, "The model cannot be used: %w", err)
	}
	return api.Errorf(api.BadModel, "The weights do not fit the network: %w", err)
}

// Abort implements api.Upload.
func (u *modelUpload) Abort() { u.files = nil }

// modelCost is how many bytes of memory the upload takes for each one on the wire:
// the files, their values and what is written.
const modelCost = 4

func (*modelUpload) cost() int64 { return modelCost }
