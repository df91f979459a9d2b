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

// modelUpload writes the files of a model folder to the disk as they come: config.json is held until it is whole, and
// of the weights one tensor.
type modelUpload struct {
	catalog *catalog.Catalog
	req     api.PutModel
	in      api.Schema
	rows    int64
	config  []byte
	weights int64                   // bytes that are still to come
	writer  *checkpoint.ModelWriter // nil until config.json is whole
}

// Model opens the upload of a model.
func Model(c *catalog.Catalog, budget *Budget, req api.PutModel, in api.Schema) (api.Upload, error) {
	u := &modelUpload{catalog: c, req: req, in: in, weights: req.WeightsBytes}
	if err := input.Want(in, []api.Column{{Name: "bytes", Type: api.Uint8, Kind: api.Tensor}}, nil); err != nil {
		return nil, err
	}
	if n := in.Columns[0].Len(); n != api.PartBytes {
		return nil, api.Errorf(api.BadTensor, "Column \"bytes\" must have %d bytes a row, got %d", api.PartBytes, n)
	}
	if req.ConfigBytes > maxConfig {
		return nil, api.Errorf(api.TooLarge, "config_bytes must be at most %d, got %d", maxConfig, req.ConfigBytes)
	}
	if req.WeightsBytes > budget.Upload-req.ConfigBytes { // before a byte comes
		return nil, exceeded(budget.Upload)
	}
	return budget.bound(u, in, req.Rows, budget.Upload, modelCost), c.FreeModel(req.Name, req.Replace)
}

// Write implements api.Upload.
func (u *modelUpload) Write(b api.Batch) error {
	if u.rows += int64(b.Rows); u.rows > u.want() {
		return u.mismatch()
	}
	bytes := api.ColumnOf[uint8](u.in, b, "bytes")
	if u.writer == nil {
		n := min(int64(len(bytes)), u.req.ConfigBytes-int64(len(u.config)))
		u.config, bytes = append(u.config, bytes[:n]...), bytes[n:]
		if int64(len(u.config)) < u.req.ConfigBytes {
			return nil
		}
		var err error
		if u.writer, err = u.catalog.CreateModel(u.req.Name, u.config, u.req.WeightsBytes); err != nil {
			return badModel(err)
		}
		u.config = nil
	}
	bytes = bytes[:min(int64(len(bytes)), u.weights)] // the last row is filled up
	u.weights -= int64(len(bytes))
	_, err := u.writer.Write(bytes)
	return badModel(err)
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
	return u.rows, badModel(u.catalog.PlaceModel(u.req.Name, u.writer, u.req.Replace))
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

// Abort implements api.Upload.
func (u *modelUpload) Abort() {
	if u.writer != nil {
		u.writer.Abort()
	}
}

// modelCost is the number of bytes that the upload takes for each one on the wire: the file, and the values of a
// tensor, which may be all of the file.
const modelCost = 2
