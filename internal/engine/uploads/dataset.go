package uploads

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// Dataset opens the upload of a data set, which is written to the disk as it comes: it may be larger than memory.
func (u *Uploads) Dataset(_ context.Context, req api.PutDataset, in api.Schema) (*api.Upload, error) {
	in, err := shaped(in, req.Shape)
	if err != nil {
		return nil, err
	}
	optional := []api.Column{{Name: "label", Type: api.Int32}, {Name: "index", Type: api.Int64}} // as a data set is read
	if err := tables.CheckColumns(in, tables.ImageAlternatives(), optional); err != nil {
		return nil, err
	}
	image, hasLabels := in.Columns[in.Index("image")], in.Index("label") >= 0
	l, h, w, channels, err := tables.ImageLayout(image)
	if err != nil {
		return nil, err
	}
	if err := u.Catalog.FreeDataset(req.Name, req.Replace); err != nil {
		return nil, err
	}
	if api.SaturatingProduct(req.Rows, in.RowBytes()) > u.MaxBytes { // before a byte comes
		return nil, exceeded(u.MaxBytes)
	}
	form := data.Form{ // a measured scale alone is about the measured mean
		Height: h, Width: w, Channels: channels, Layout: l, Float: image.Type == api.Float32, Labels: hasLabels,
		MeasureMean: req.Mean.Measured || req.Scale.Measured && !req.Mean.Given(), MeasureScale: req.Scale.Measured,
	}
	if form.Normalization, err = declared(req, in, form); err != nil {
		return nil, err
	}
	files, err := u.Catalog.CreateDataset(req.Name, form, int(req.Rows))
	if err != nil {
		return nil, err
	}
	write := func(b api.Batch) error { // which refuses bad values as they arrive, not after gigabytes more
		var labels []int32
		if hasLabels {
			var err error
			if labels, err = tables.Int32s(in, b, "label", int64(files.Len())); err != nil {
				return err
			}
		}
		if v, ok := b.Cols[in.Index("image")].([]float32); ok {
			return files.Float32(v, labels)
		}
		return files.Uint8(api.ColumnOf[uint8](in, b, "image"), labels)
	}
	commit := func() (int64, error) {
		if files.Len() == 0 {
			files.Abort()
			return 0, api.Errorf(api.BadTensor, "The data set has no images")
		}
		return int64(files.Len()), u.Catalog.PlaceDataset(req.Name, files, req.Replace)
	}
	return u.bound(api.Upload{Write: write, Commit: commit, Abort: files.Abort}, in, req.Rows, u.MaxBytes, 1), nil
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
			tables.ExpectedType(tables.ImageAlternatives()...), tables.ActualType(image))
	case shape == nil || image.Kind == api.Tensor && slices.Equal(shape, image.Shape):
		return in, nil
	}
	want := api.Column{Shape: shape}
	if image.Kind != api.List || image.Len() != want.Len() {
		return in, api.Errorf(api.BadTensor, "Column \"image\" must have the shape %v of the request, got %s", shape,
			tables.ActualType(image))
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
