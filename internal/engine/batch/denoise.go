package batch

import "context"

// Denoise evaluates a network on n noisy images [n, H, W, C] with their variances [n·J] and labels [n], a bucket at a
// time, alone or with other requests. The results have no padding.
func (b *Batcher) Denoise(
	ctx context.Context, net Network, x []float32, g []float64, labels []int32,
) (denoised, flow, raw []float32, err error) {
	net, leave, err := b.spread.take(net)
	if err != nil {
		return nil, nil, nil, err
	}
	defer leave()
	return b.denoise(ctx, net, x, g, labels)
}

// denoise is Denoise on the device where the network is.
func (b *Batcher) denoise(
	ctx context.Context, net Network, x []float32, g []float64, labels []int32,
) (denoised, flow, raw []float32, err error) {
	size, j := net.Model.Pixels(), net.Model.J()
	for done := 0; done < len(labels); {
		bucket := BucketFor(net.Model, len(labels)-done)
		n := min(bucket, len(labels)-done)
		p := &denoisePart{
			net: net, n: n, x: Pad(x, size, done, n, bucket), g: Pad(g, j, done, n, bucket),
			labels: Pad(labels, 1, done, n, bucket),
		}
		if err := b.evaluate(ctx, net, p); err != nil {
			return nil, nil, nil, err
		}
		denoised, flow, raw = append(denoised, p.out[0]...), append(flow, p.out[1]...), append(raw, p.out[2]...)
		done += n
	}
	return denoised, flow, raw, nil
}

// denoisePart is a part of the images, padded to a bucket.
type denoisePart struct {
	net    Network
	n      int // rows that are no padding
	x      []float32
	g      []float64
	labels []int32
	out    [3][]float32 // denoised, flow, raw, without padding
}

func (p *denoisePart) rows() int { return p.n }

func (p *denoisePart) alone(ctx context.Context) error {
	denoised, flow, raw, err := p.net.Model.Denoise(ctx, p.net.Weights, p.x, p.g, p.labels)
	if err != nil {
		return err
	}
	size := p.n * p.net.Model.Pixels()
	return p.output(ctx, denoised[:size], flow[:size], raw[:size])
}

func (p *denoisePart) input(context.Context) (x []float32, g []float64, labels []int32, err error) {
	return p.x[:p.n*p.net.Model.Pixels()], p.g[:p.n*p.net.Model.J()], p.labels[:p.n], nil
}

func (p *denoisePart) output(_ context.Context, denoised, flow, raw []float32) error {
	p.out = [3][]float32{denoised, flow, raw}
	return nil
}
