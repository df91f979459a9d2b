package sampler

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Network is a network on a device: what evaluations must have in common to share a batch.
type Network struct {
	Model   *kernels.Model
	Weights *kernels.Weights
}

// Fits reports whether a device holds the network's weights, or has room for twice their size: as much again for
// programs.
func (n Network) Fits(d *device.Device) bool {
	available, known := d.Available()
	return !known || n.Weights.ResidesOn(d) || available >= 2*n.Weights.Bytes()
}

// OnDevice returns the network on a peer of its device, with its weights there.
func (n Network) OnDevice(d *device.Device) (Network, error) {
	model, err := n.Model.OnDevice(d)
	if err != nil {
		return n, err
	}
	weights, err := n.Weights.CopyTo(model)
	return Network{Model: model, Weights: weights}, err
}

// Device is shared by trajectories and other work, which take turns.
type Device interface {
	// Place returns a network on the device that has the least to do. leave must be called after its last use.
	Place(net Network) (placed Network, leave func(), err error)
	// Take waits for its turn and runs f.
	Take(ctx context.Context, f func() error) error
	// Evaluate waits for its turn and evaluates p, alone or together with others that wait for the same network.
	Evaluate(ctx context.Context, net Network, p Part) error
	// Run runs f, which takes long. Whenever f reports, Run lets others take a turn and calls report, which may be nil.
	Run(ctx context.Context, report func(done, total int), f func(report func(done, total int)) error) error
}

// Part is a number of rows to be evaluated. Either Alone is called, or Input and then Output, from one goroutine at a
// time.
type Part struct {
	Rows, Size int // of the batch, without and with padding
	// Alone evaluates the rows and uses the result.
	Alone func(ctx context.Context) error
	// Input returns the rows: images [n, H, W, C], variances [n·J] and labels [n].
	Input func(ctx context.Context) (x []float32, g []float64, labels []int32, err error)
	// Output uses the evaluation of the rows that Input returned.
	Output func(ctx context.Context, denoised, flow, raw []float32) error
}

// Denoise evaluates a network on n noisy images [n, H, W, C] with their variances [n·J] and labels [n], a bucket at a
// time. The results have no padding.
func Denoise(
	ctx context.Context, dev Device, net Network, x []float32, g []float64, labels []int32,
) (denoised, flow, raw []float32, err error) {
	net, leave, err := dev.Place(net)
	if err != nil {
		return nil, nil, nil, err
	}
	defer leave()
	return denoise(ctx, dev, net, x, g, labels)
}

// denoise is Denoise on the network's own device.
func denoise(
	ctx context.Context, dev Device, net Network, x []float32, g []float64, labels []int32,
) (denoised, flow, raw []float32, err error) {
	for b := range Buckets(net.Model, len(labels)) {
		p := Evaluation(net, b, Pad(x, net.Model.Pixels(), b), Pad(g, net.Model.J(), b), Pad(labels, 1, b),
			func(_ context.Context, d, f, r []float32) error {
				denoised, flow, raw = append(denoised, d...), append(flow, f...), append(raw, r...)
				return nil
			})
		if err := dev.Evaluate(ctx, net, p); err != nil {
			return nil, nil, nil, err
		}
	}
	return denoised, flow, raw, nil
}

// Evaluation returns the part of a padded bucket of images. output is called with their evaluation without padding.
func Evaluation(net Network, b Bucket, x []float32, g []float64, labels []int32,
	output func(ctx context.Context, denoised, flow, raw []float32) error,
) Part {
	size := b.N * net.Model.Pixels()
	return Part{
		Rows: b.N, Size: b.Size, Output: output,
		Alone: func(ctx context.Context) error {
			denoised, flow, raw, err := net.Model.Denoise(ctx, net.Weights, x, g, labels)
			if err != nil {
				return err
			}
			return output(ctx, denoised[:size], flow[:size], raw[:size])
		},
		Input: func(context.Context) ([]float32, []float64, []int32, error) {
			return x[:size], g[:b.N*net.Model.J()], labels[:b.N], nil
		},
	}
}
