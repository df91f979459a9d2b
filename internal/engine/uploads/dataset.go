package uploads

import (
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/train/data"
)

// datasetUpload writes images and labels to the disk as they come: a data set may be larger than memory.
type datasetUpload struct {
	catalog *catalog.Catalog
	req     api.PutDataset
	in      api.Schema
	w       *data.Writer
}

// Dataset opens the upload of a data set.
func Dataset(c *catalog.Catalog, budget *Budget, req api.PutDataset, in api.Schema) (api.Upload, error) {
	in, err := shaped(in, req.Shape)
	if err != nil {
		return nil, err
	}
	u := &datasetUpload{catalog: c, req: req, in: in}
	optional := []api.Column{{Name: "label", Type: api.Int32}, {Name: "index", Type: api.Int64}} // as a data set is read
	if err := input.Want(in, input.Images(), optional); err != nil {
		return nil, err
	}
	image := in.Columns[in.Index("image")]
	l, h, w, channels, err := input.ImageLayout(image)
	if err != nil {
		return nil, err
	}
	if err := c.FreeDataset(u.req.Name, u.req.Replace); err != nil {
		return nil, err
	}
	if api.Times(req.Rows, in.RowBytes()) > budget.Upload { // before a byte comes
		return nil, exceeded(budget.Upload)
	}
	form := data.Form{ // a measured scale alone is about the measured mean
		Height: h, Width: w, Channels: channels, Layout: l, Float: image.Type == api.Float32, Labels: in.Index("label") >= 0,
		MeasureMean: req.Mean.Measured || req.Scale.Measured && !req.Mean.Given(), MeasureScale: req.Scale.Measured,
	}
	if form.Normalization, err = declared(req, in, form); err != nil {
		return nil, err
	}
	u.w, err = c.CreateDataset(u.req.Name, form, int(req.Rows))
	return budget.bound(u, in, req.Rows, budget.Upload, 1), err
}

// shaped returns the schema with images that come as lists as tensors of the request's shape.
func shaped(in api.Schema, shape []int) (api.Schema, error) {
	i := in.Index("image")
	if i < 0 {
		return in, nil
	}
	image := in.Columns[i]
	switch {
	case shape == nil && image.Kind != api.Tensor:
		return in, api.Errorf(api.BadTensor,
			"Column \"image\" must be %s, or fixed_size_list with shape in the request, got %s",
			input.Wanted(input.Images()...), input.Given(image))
	case shape == nil || image.Kind == api.Tensor && slices.Equal(shape, image.Shape):
		return in, nil
	}
	want := api.Column{Shape: shape}
	if image.Kind != api.List || image.Len() != want.Len() {
		return in, api.Errorf(api.BadTensor, "Column \"image\" must have the shape %v of the request, got %s", shape,
			input.Given(image))
	}
	in.Columns = slices.Clone(in.Columns)
	in.Columns[i].Kind, in.Columns[i].Shape = api.Tensor, shape
	return in, nil
}

// declared returns what a request says of mean and scale, or else the metadata of a data set that was read; what is
// measured takes the place of it.
func declared(req api.PutDataset, in api.Schema, form data.Form) (*normalization.Affine, error) {
	if !req.Mean.Given() && !req.Scale.Given() {
		text, ok := in.Metadata["normalization"]
		if !ok {
			return nil, nil
		}
		var n *normalization.Affine
		err := json.Unmarshal([]byte(text), &n)
		if err == nil {
			err = n.Fits(form.Channels)
		}
		if err != nil || n == nil || !form.Float {
			return nil, api.Errorf(api.BadRequest, "The schema's metadata normalization must be mean and scale of the "+
				"channels of float32 images, got %.200s", text).WithHint("Leave it out, or give mean and scale in the request.")
		}
		return n, nil
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
	var labels []int32
	if u.in.Index("label") >= 0 {
		var err error
		if labels, err = input.Int32s(u.in, b, "label", int64(u.w.Len())); err != nil {
			return err
		}
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
