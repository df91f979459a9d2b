package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// makeDataset draws images from a mixture and stores them. Image i depends on the model and on seed + i alone.
func (e *Engine) makeDataset(ctx context.Context, req api.MakeDataset, progress func(api.Meta)) (any, error) {
	if err := e.catalog.FreeDataset(req.Name, req.Replace); err != nil { // before the work; PlaceDataset asks again
		return nil, err
	}
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	net, ok := m.Net.(kernels.Sampler)
	if !ok {
		return nil, api.Errorf(api.BadRequest, "The model %q is no mixture: images of a known law are drawn from one",
			req.Model).WithHint("MakeModel makes mixtures.")
	}
	values, err := m.Values()
	if err != nil {
		return nil, err
	}
	h, w, c := m.ImageSize()
	if bytes := api.Times(api.Times(int64(h)*int64(w), int64(c)*4), int64(req.N)); bytes > e.cfg.MaxUploadBytes {
		return nil, api.Errorf(api.TooLarge, "%d images have %d bytes, a data set may have %d", req.N, bytes,
			e.cfg.MaxUploadBytes)
	}
	images, err := e.catalog.CreateDataset(req.Name, data.Form{
		Height: h, Width: w, Channels: c, Float: true, Labels: m.Shape.Labels > 0, Unbounded: true,
		Normalization: m.Shape.Normalization,
	}, req.N)
	if err != nil {
		return nil, err
	}
	defer images.Abort()
	report := api.Sparsely(progress)
	normal, image := make([]float32, h*w*c), make([]float32, h*w*c)
	for i := range req.N {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := latent.Uint64(req.Seed+uint64(i), 0, 0)
		latent.Normal(key, 1, normal)
		label := net.Draw(values, float64(latent.Uint64(key, 0, 0)>>11)*0x1p-53, normal, image)
		m.Shape.Normalization.Back(image)
		var labels []int32
		if m.Shape.Labels > 0 {
			labels = []int32{int32(label)}
		}
		if err := images.Float32(image, labels); err != nil {
			return nil, err
		}
		report(i+1, req.N)
	}
	if err := e.catalog.PlaceDataset(req.Name, images, req.Replace); err != nil {
		return nil, err
	}
	d, err := e.catalog.Dataset(req.Name)
	if err != nil {
		return nil, err
	}
	return catalog.DescribeDataset(req.Name, d), nil
}
