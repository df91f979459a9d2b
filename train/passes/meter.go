package passes

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
)

// The streams of package latent that passes draw from.
const (
	streamSample uint32 = 0x6576616c
	streamPlace  uint32 = 0x74696d65
)

// residualSource measures |P_j(flow(x_t) + ε)|² [n*J] of samples 0 … n−1 at the variances g [n*J]: a meter on the
// device, or whoever evaluates the network elsewhere.
type residualSource interface {
	residuals(ctx context.Context, g []float64) ([]float64, error)
}

// meter measures residuals |P_j(flow(x_t) + ε)|² of a network on images of a data set.
// Sample number k has the same image and noise whatever it is measured at: what is
// measured at two schedules is paired.
type meter struct {
	model    *kernels.Model
	weights  *kernels.Weights
	data     *data.Dataset
	pool     []int // images to choose from; nil for all
	order    *data.Order
	seed     uint64
	batch    int
	progress func(done, total int)
	done     int
	total    int
}

func newMeter(m *kernels.Model, w *kernels.Weights, d *data.Dataset, pool []int, seed uint64, batch int) *meter {
	n := len(pool)
	if pool == nil {
		n = d.Len()
	}
	setting.Default(&batch, m.FitBatch(128))
	key := latent.Uint64(seed, streamSample, 0)
	return &meter{model: m, weights: w, data: d, pool: pool, order: data.NewOrder(key, n, false), seed: key, batch: batch}
}

// residuals returns |P_j r|² [n*J] of samples 0 … n−1 at the variances g [n*J].
func (r *meter) residuals(ctx context.Context, g []float64) ([]float64, error) {
	pixels, j := r.model.Pixels(), r.model.J()
	n := len(g) / j
	out := make([]float64, 0, len(g))
	ones := make([]float64, r.batch*j)
	for i := range ones {
		ones[i] = 1
	}
	for begin := 0; begin < n; begin += r.batch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		count := min(r.batch, n-begin)
		in := kernels.EstimateInput{
			Mode: kernels.LossOnly,
			X0:   make([]float32, count*pixels), Eps: make([]float32, count*pixels),
			G: g[begin*j : (begin+count)*j], Omega: ones[:count*j], Labels: make([]int32, count),
		}
		for i := range count {
			x0, eps := in.X0[i*pixels:(i+1)*pixels], in.Eps[i*pixels:(i+1)*pixels]
			var err error
			if in.Labels[i], err = r.draw(uint64(begin+i), x0, eps); err != nil {
				return nil, err
			}
		}
		terms, err := r.model.Estimate(ctx, r.weights, in)
		if err != nil {
			return nil, err
		}
		out = append(out, terms.Residual...)
		r.add(count)
	}
	return out, nil
}

// residualImages hands over the residuals flow(x_t) + ε as images [H·W·C], sample by
// sample: per images at each noise level, the same in all directions.
func (r *meter) residualImages(ctx context.Context, sigma []float64, per int,
	take func(sample int, residual []float64),
) error {
	pixels, n := r.model.Pixels(), len(sigma)*per
	residual := make([]float64, pixels)
	x, eps := make([]float32, r.batch*pixels), make([]float32, r.batch*pixels)
	g, labels := make([]float64, r.batch), make([]int32, r.batch)
	for begin := 0; begin < n; begin += r.batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(r.batch, n-begin)
		for i := range count {
			s := sigma[(begin+i)/per]
			image, noise := x[i*pixels:(i+1)*pixels], eps[i*pixels:(i+1)*pixels]
			var err error
			if labels[i], err = r.draw(uint64(begin+i), image, noise); err != nil {
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
			for k := range residual {
				residual[k] = float64(flow[i*pixels+k]) + float64(eps[i*pixels+k])
			}
			take(begin+i, residual)
		}
		r.add(count)
	}
	return nil
}

// add counts samples done and reports how many there are.
func (r *meter) add(n int) {
	if r.done += n; r.progress != nil {
		r.progress(r.done, r.total)
	}
}

// draw writes the image and the noise of a sample and returns the image's label.
func (r *meter) draw(sample uint64, image, noise []float32) (int32, error) {
	at := r.image(sample)
	if err := r.data.Image(at, false, image); err != nil {
		return 0, err
	}
	latent.Normal(latent.Uint64(r.seed, streamSample, sample+1), streamSample, noise)
	return r.data.Label(at), nil
}

// image returns the image of a sample.
func (r *meter) image(sample uint64) int {
	image, _ := r.order.At(sample)
	if r.pool != nil {
		image = r.pool[image]
	}
	return image
}

// time returns the time of a sample among n: stratified, one in each of n equal parts of
// [0, T].
func (r *meter) time(sample, n int, T float64) float64 {
	u := float64(latent.Uint64(r.seed, streamPlace, uint64(sample))>>11) * 0x1p-53
	return T * (float64(sample) + u) / float64(n)
}

// poolOf returns the images of a class.
func poolOf(d *data.Dataset, label int) []int {
	var pool []int
	for i := range d.Len() {
		if int(d.Label(i)) == label {
			pool = append(pool, i)
		}
	}
	return pool
}
