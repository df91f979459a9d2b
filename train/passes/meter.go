package passes

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// The streams of package latent that passes draw from.
const (
	streamSample uint32 = 0x6576616c
	streamPlace  uint32 = 0x74696d65
)

// ErrNotFinite is returned if the answers of a network are not finite.
var ErrNotFinite = errors.New("the network's answers are not finite")

// progress counts work done and reports it.
type progress struct {
	report      func(done, total int) // may be nil
	done, total int
}

func (p *progress) add(n int) {
	if p.done += n; p.report != nil {
		p.report(p.done, p.total)
	}
}

// sampler draws the image and the noise of every sample by its number, so that measurements on two schedules are
// paired.
type sampler struct {
	batch    int
	order    *data.Order
	seed     uint64
	progress *progress
}

func newSampler(images, batch int, seed uint64, p *progress) sampler {
	key := latent.Uint64(seed, streamSample, 0)
	return sampler{batch: batch, order: data.NewOrder(key, images, false), seed: key, progress: p}
}

// noiseSeed returns the seed of a sample's noise.
func (s *sampler) noiseSeed(sample int) uint64 {
	return latent.Uint64(s.seed, streamSample, uint64(sample)+1)
}

// time returns the time of one of n samples, stratified in n equal parts of [0, T].
func (s *sampler) time(sample, n int, T float64) float64 {
	u := float64(latent.Uint64(s.seed, streamPlace, uint64(sample))>>11) * 0x1p-53
	return T * (float64(sample) + u) / float64(n)
}

// batches calls do for the batches begin … end−1 of n samples.
func (s *sampler) batches(ctx context.Context, n int, do func(begin, end int) error) error {
	for begin := 0; begin < n; begin += s.batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(begin+s.batch, n)
		if err := do(begin, end); err != nil {
			return err
		}
		s.progress.add(end - begin)
	}
	return nil
}

// meter is a sampler that evaluates a network on the device, on images of a data set.
type meter struct {
	sampler
	model   *kernels.Model
	weights *kernels.Weights
	data    *data.Dataset
	pool    []int // images to choose from; nil for all
}

func newMeter(m *kernels.Model, w *kernels.Weights, d *data.Dataset, pool []int, seed uint64, batch int, p *progress,
) *meter {
	n := len(pool)
	if pool == nil {
		n = d.Len()
	}
	batch = cmp.Or(batch, m.FitBatch(128))
	return &meter{sampler: newSampler(n, batch, seed, p), model: m, weights: w, data: d, pool: pool}
}

// residuals returns |P_j(flow(x_t) + ε)|² [n*J] of samples 0 … n−1 at the variances g [n*J].
func (r *meter) residuals(ctx context.Context, g []float64) ([]float64, error) {
	out, subspaces := make([]float64, 0, len(g)), r.model.J()
	err := r.batches(ctx, len(g)/subspaces, func(begin, end int) error {
		residual, err := r.estimate(ctx, begin, g[begin*subspaces:end*subspaces])
		out = append(out, residual...)
		return err
	})
	return out, err
}

// estimate returns the residuals of the samples from begin on.
func (r *meter) estimate(ctx context.Context, begin int, g []float64) ([]float64, error) {
	pixels, count := r.model.Pixels(), len(g)/r.model.J()
	in := kernels.EstimateInput{
		Mode: kernels.LossOnly,
		X0:   make([]float32, count*pixels), Eps: make([]float32, count*pixels),
		G: g, Omega: slices.Repeat([]float64{1}, len(g)), Labels: make([]int32, count),
	}
	for i := range count {
		x0, eps := in.X0[i*pixels:(i+1)*pixels], in.Eps[i*pixels:(i+1)*pixels]
		var err error
		if in.Labels[i], err = r.draw(begin+i, x0, eps); err != nil {
			return nil, err
		}
	}
	terms, err := r.model.Estimate(ctx, r.weights, in)
	if err != nil {
		return nil, err
	}
	if !setting.Finite(Mean(terms.Residual)) {
		return nil, ErrNotFinite
	}
	return terms.Residual, nil
}

// residualImages calls use with the residual flow(x_t) + ε of each sample, [H·W·C]: perLevel samples at each noise
// level, with isotropic noise.
func (r *meter) residualImages(ctx context.Context, sigma []float64, perLevel int,
	use func(sample int, residual []float64),
) error {
	pixels := r.model.Pixels()
	residual := make([]float64, pixels)
	x, eps := make([]float32, r.batch*pixels), make([]float32, r.batch*pixels)
	g, labels := make([]float64, r.batch), make([]int32, r.batch)
	return r.batches(ctx, len(sigma)*perLevel, func(begin, end int) error {
		count := end - begin
		for i := range count {
			s := sigma[(begin+i)/perLevel]
			image, noise := x[i*pixels:(i+1)*pixels], eps[i*pixels:(i+1)*pixels]
			var err error
			if labels[i], err = r.draw(begin+i, image, noise); err != nil {
				return err
			}
			g[i] = s * s
			for k, v := range noise {
				image[k] += float32(s) * v
			}
		}
		_, flow, _, err := r.model.Denoise(ctx, r.weights, x[:count*pixels], g[:count], labels[:count])
		if err != nil {
			return err
		}
		for i := range count {
			var sum float64
			for k := range residual {
				residual[k] = float64(flow[i*pixels+k]) + float64(eps[i*pixels+k])
				sum += residual[k]
			}
			if !setting.Finite(sum) {
				return ErrNotFinite
			}
			use(begin+i, residual)
		}
		return nil
	})
}

// draw writes the image and the noise of a sample and returns the image's label.
func (r *meter) draw(sample int, image, noise []float32) (int32, error) {
	i := r.image(sample)
	if err := r.data.Image(i, false, image); err != nil {
		return 0, err
	}
	latent.Normal(r.noiseSeed(sample), streamSample, noise)
	return r.data.Label(i), nil
}

// image returns the image of a sample.
func (r *meter) image(sample int) int {
	image, _ := r.order.At(uint64(sample))
	if r.pool != nil {
		image = r.pool[image]
	}
	return image
}

// imagesByClass returns the images of each class, −1 for none.
func imagesByClass(d *data.Dataset) map[int][]int {
	images := map[int][]int{}
	for i := range d.Len() {
		label := int(d.Label(i))
		images[label] = append(images[label], i)
	}
	return images
}
