package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/train/data"
)

// makeDataset draws images from a mixture and stores them. Image i depends on the model and on seed + i alone.
func (e *Engine) makeDataset(ctx context.Context, req api.MakeDataset, progress func(api.Meta)) (any, error) {
	if err := e.freeDataset(req.Name, req.Replace); err != nil { // before the work; storeDataset asks again
		return nil, err
	}
	m, err := e.modelNamed(req.Model)
	if err != nil {
		return nil, err
	}
	net, ok := m.stored.Net.(*mixture.Net)
	if !ok {
		return nil, api.Errorf(api.BadRequest, "The model %q is no mixture: images of a known law are drawn from one", req.Model).WithHint("MakeModel makes mixtures.")
	}
	h, w, c := m.imageSize()
	if bytes := times(times(int64(h)*int64(w), int64(c)*4), int64(req.N)); bytes > e.cfg.MaxUploadBytes {
		return nil, api.Errorf(api.TooLarge, "%d images have %d bytes, a data set may have %d", req.N, bytes, e.cfg.MaxUploadBytes)
	}
	images := data.Images{Height: h, Width: w, Channels: c, Unbounded: true, Float32: make([]float32, req.N*h*w*c)}
	if m.shape.Labels > 0 {
		images.Labels = make([]int32, req.N)
	}
	report := sparsely(progress)
	components := net.Config().Components
	var total float64
	for _, k := range components {
		total += k.Weight
	}
	normal := make([]float32, h*w*c)
	for i := range req.N {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := latent.Uint64(req.Seed+uint64(i), 0, 0)
		u := total * float64(latent.Uint64(key, 0, 0)>>11) * 0x1p-53
		at := 0
		for at < len(components)-1 && u >= components[at].Weight {
			u -= components[at].Weight
			at++
		}
		latent.Normal(key, 1, normal)
		net.Sample(m.stored.Values, at, normal, images.Float32[i*len(normal):(i+1)*len(normal)])
		if images.Labels != nil {
			images.Labels[i] = int32(components[at].Label)
		}
		report(i+1, req.N)
	}
	d, err := data.New(images)
	if err != nil {
		return nil, err
	}
	if err := e.storeDataset(req.Name, d, req.Replace); err != nil {
		return nil, err
	}
	return describeDataset(req.Name, d), nil
}
