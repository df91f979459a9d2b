package uploads

import (
	"github.com/anisoflight/anisoflight/base/normalization"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/train/data"
)

// datasetUpload writes images and labels to the disk as they come: a data set may be larger than memory.
type datasetUpload struct {
	catalog *catalog.Catalog
	req     api.PutDataset
	in      api.Schema
	quota   quota
	w       *data.Writer
}

// Dataset opens the upload of a data set.
func Dataset(c *catalog.Catalog, limit int64, req api.PutDataset, in api.Schema) (api.Upload, error) {
	u := &datasetUpload{catalog: c, req: req, in: in, quota: quota{limit: limit}}
	image := api.Column{Name: "image", Type: api.Uint8, Kind: api.Tensor}
	if i := in.Index("image"); i >= 0 && in.Columns[i].Type == api.Float32 {
		image.Type = api.Float32
	}
	if err := input.Want(in, []api.Column{image}, []api.Column{{Name: "label", Type: api.Int32}}); err != nil {
		return nil, err
	}
	l, h, w, channels, err := input.ImageLayout(in.Columns[in.Index("image")])
	if err != nil {
		return nil, err
	}
	if err := c.FreeDataset(u.req.Name, u.req.Replace); err != nil {
		return nil, err
	}
	if api.Times(req.Rows, in.RowBytes()) > limit { // before a byte comes
		return nil, u.quota.exceeded()
	}
	form := data.Form{ // a measured scale alone is about the measured mean
		Height: h, Width: w, Channels: channels, Layout: l, Float: image.Type == api.Float32, Labels: in.Index("label") >= 0,
		MeasureMean: req.Mean.Measured || req.Scale.Measured && !req.Mean.Given(), MeasureScale: req.Scale.Measured,
	}
	if form.Normalization, err = declared(req, form); err != nil {
		return nil, err
	}
	u.w, err = c.CreateDataset(u.req.Name, form, int(req.Rows))
	return announce(u, req.Rows), err
}

// declared returns what a request says of mean and scale; what is measured takes the place of it.
func declared(req api.PutDataset, form data.Form) (*normalization.Affine, error) {
	if !req.Mean.Given() && !req.Scale.Given() {
		return nil, nil
	}
	if !form.Float {
		return nil, api.Errorf(api.BadRequest, "mean and scale are those of float32; column \"image\" holds uint8").
			WithHint("Bytes are images in [−1, 1]: leave out both, or send floats.")
	}
	n, err := normalization.New(req.Mean.Values, req.Scale.Values, form.Channels)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "%w", err)
	}
	return n, nil
}

// Write implements api.Upload. Bad values are refused as they arrive, not after gigabytes more.
func (u *datasetUpload) Write(b api.Batch) error {
	if err := u.quota.take(u.in, b); err != nil {
		return err
	}
	var labels []int32
	if u.in.Index("label") >= 0 {
		labels = api.ColumnOf[int32](u.in, b, "label")
	}
	if v, ok := b.Cols[u.in.Index("image")].([]float32); ok {
		return u.w.Float32(v, labels)
	}
	return u.w.Uint8(api.ColumnOf[uint8](u.in, b, "image"), labels)
}

// Commit implements api.Upload.
func (u *datasetUpload) Commit() (int64, error) {
	if u.w.Len() == 0 {
		u.w.Abort()
		return 0, api.Errorf(api.BadTensor, "The data set has no images")
	}
	return int64(u.w.Len()), u.catalog.PlaceDataset(u.req.Name, u.w, u.req.Replace)
}

// Abort implements api.Upload.
func (u *datasetUpload) Abort() { u.w.Abort() }
