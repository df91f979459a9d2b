package contents

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// MakeDataset draws images from a mixture and stores them. Image i depends only on the model and on seed + i.
func (c *Contents) MakeDataset(ctx context.Context, req api.MakeDataset, progress func(api.Meta),
) (info api.DatasetInfo, err error) {
	if err := c.Catalog.FreeDataset(req.Name, req.Replace); err != nil { // before the work; PlaceDataset checks again
		return info, err
	}
	m, err := c.Catalog.Model(req.Model)
	if err != nil {
		return info, err
	}
	net, ok := m.Net.(kernels.Sampler)
	if !ok {
		return info, api.Errorf(api.BadRequest, "model must be a mixture, got %q", req.Model).
			WithHint("MakeModel makes mixtures.")
	}
	model, err := m.ReadWithValues()
	if err != nil {
		return info, err
	}
	h, w, channels := m.ImageSize()
	size := h * w * channels
	if bytes := api.SaturatingProduct(int64(size)*4, int64(req.N)); bytes > c.MaxUploadBytes {
		return info, api.Errorf(api.TooLarge, "%d images have %d bytes, and a data set at most %d", req.N, bytes,
			c.MaxUploadBytes)
	}
	images, err := c.Catalog.CreateDataset(req.Name, data.Form{
		Height: h, Width: w, Channels: channels, Float: true, Labels: m.Shape.Labels > 0, Unbounded: true,
		Normalization: m.Shape.Normalization,
	}, req.N)
	if err != nil {
		return info, err
	}
	defer images.Abort()
	report := api.ThrottledProgress(progress)
	normal, image := make([]float32, size), make([]float32, size)
	for i := range req.N {
		if err := ctx.Err(); err != nil {
			return info, err
		}
		key := latent.Uint64(req.Seed+uint64(i), 0, 0)
		latent.Normal(key, 1, normal)
		label := net.Draw(model.Values, float64(latent.Uint64(key, 0, 0)>>11)*0x1p-53, normal, image)
		m.Shape.Normalization.Back(image)
		labels := []int32{int32(label)}
		if m.Shape.Labels == 0 {
			labels = nil
		}
		if err := images.Float32(image, labels); err != nil {
			return info, err
		}
		report(i+1, req.N)
	}
	if err := c.Catalog.PlaceDataset(req.Name, images, req.Replace); err != nil {
		return info, err
	}
	d, err := c.Catalog.Dataset(req.Name)
	if err != nil {
		return info, err
	}
	return catalog.DescribeDataset(req.Name, d), nil
}

// SendDataset sends the images of a data set.
func (c *Contents) SendDataset(_ context.Context, req api.Dataset) (*api.Job, error) {
	d, err := c.Catalog.Dataset(req.Dataset)
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
	return tables.NewPricedJob(c.MaxBytes, schema, int64(n), func(ctx context.Context, emit func(api.Event) error) error {
		return sendInBatches(ctx, schema, n, emit, func(from, to int) ([]any, error) {
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

// PutDataset opens the upload of a data set. Its images are written to the disk as they come: they may exceed memory.
func (c *Contents) PutDataset(_ context.Context, req api.PutDataset, in api.Schema) (*api.Upload, error) {
	in, err := withShape(in, req.Shape)
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
	if err := c.Catalog.FreeDataset(req.Name, req.Replace); err != nil {
		return nil, err
	}
	if api.SaturatingProduct(req.Rows, in.RowBytes()) > c.MaxUploadBytes { // before a byte comes
		return nil, errTooLong(c.MaxUploadBytes)
	}
	form := data.Form{ // a measured scale alone is about the measured mean
		Height: h, Width: w, Channels: channels, Layout: l, Float: image.Type == api.Float32, Labels: hasLabels,
		MeasureMean: req.Mean.Measured || req.Scale.Measured && !req.Mean.Given(), MeasureScale: req.Scale.Measured,
	}
	if form.Normalization, err = declaredNormalization(req, in, form); err != nil {
		return nil, err
	}
	files, err := c.Catalog.CreateDataset(req.Name, form, int(req.Rows))
	if err != nil {
		return nil, err
	}
	write := func(b api.Batch) error { // refuses bad values as they arrive, not after gigabytes more
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
		return int64(files.Len()), c.Catalog.PlaceDataset(req.Name, files, req.Replace)
	}
	upload := api.Upload{Write: write, Commit: commit, Abort: files.Abort}
	return c.limitedUpload(upload, in, req.Rows, c.MaxUploadBytes, 1), nil
}

// withShape returns the schema in which images that come as lists are tensors of the request's shape.
func withShape(in api.Schema, shape []int) (api.Schema, error) {
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

// declaredNormalization returns the normalization that a request declares by mean and scale, or else that of the
// schema's metadata, which a data set has when it is read. A measured mean or scale replaces it later.
func declaredNormalization(req api.PutDataset, in api.Schema, form data.Form) (*normalization.Affine, error) {
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
		return nil, api.Errorf(api.BadRequest, "mean and scale need float32 images, got uint8").
			WithHint("Bytes are images in [−1, 1]: leave out both, or send floats.")
	}
	n, err := normalization.New(req.Mean.Values, req.Scale.Values, form.Channels)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "%w", err)
	}
	return n, nil
}
