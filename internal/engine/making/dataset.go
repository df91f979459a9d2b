package making

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// Dataset draws images from a mixture and stores them. Image i depends on the model and on seed + i alone.
func (k *Maker) Dataset(ctx context.Context, req api.MakeDataset, progress func(api.Meta),
) (info api.DatasetInfo, err error) {
	if err := k.Catalog.FreeDataset(req.Name, req.Replace); err != nil { // before the work; PlaceDataset checks again
		return info, err
	}
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return info, err
	}
	net, ok := m.Net.(kernels.Sampler)
	if !ok {
		return info, api.Errorf(api.BadRequest, "The model %q is no mixture: images of a known law are drawn from one",
			req.Model).WithHint("MakeModel makes mixtures.")
	}
	stored, err := m.ReadWithValues()
	if err != nil {
		return info, err
	}
	h, w, c := m.ImageSize()
	if bytes := api.SaturatingProduct(api.SaturatingProduct(int64(h)*int64(w), int64(c)*4), int64(req.N)); bytes > k.MaxBytes {
		return info, api.Errorf(api.TooLarge, "%d images have %d bytes, a data set may have %d", req.N, bytes,
			k.MaxBytes)
	}
	images, err := k.Catalog.CreateDataset(req.Name, data.Form{
		Height: h, Width: w, Channels: c, Float: true, Labels: m.Shape.Labels > 0, Unbounded: true,
		Normalization: m.Shape.Normalization,
	}, req.N)
	if err != nil {
		return info, err
	}
	defer images.Abort()
	report := api.ThrottledProgress(progress)
	normal, image := make([]float32, h*w*c), make([]float32, h*w*c)
	for i := range req.N {
		if err := ctx.Err(); err != nil {
			return info, err
		}
		key := latent.Uint64(req.Seed+uint64(i), 0, 0)
		latent.Normal(key, 1, normal)
		label := net.Draw(stored.Values, float64(latent.Uint64(key, 0, 0)>>11)*0x1p-53, normal, image)
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
	if err := k.Catalog.PlaceDataset(req.Name, images, req.Replace); err != nil {
		return info, err
	}
	d, err := k.Catalog.Dataset(req.Name)
	if err != nil {
		return info, err
	}
	return catalog.DescribeDataset(req.Name, d), nil
}
