package recipe

import (
	"fmt"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
)

// Cost is what a stage's network computes; reading data, and the features of distances, are not counted.
type Cost struct {
	Images int     `json:"images"`     // that go through the network
	FLOPs  float64 `json:"flops"`      // floating-point operations on all of them
	Batch  int     `json:"batch"`      // images on the device at a time
	Memory int64   `json:"memory"`     // bytes that this batch needs, an estimate
	PerSec float64 `json:"per_second"` // images; of a rate of operations
	Hours  float64 `json:"hours"`      // of the same
}

// sampleBatch is how many images a sampler is counted with at a time.
const sampleBatch = 256

// Net is the recipe's network.
func (r *Recipe) Net() (*unet.Net, error) {
	c, err := r.Network.parse()
	if err != nil {
		return nil, err
	}
	return unet.New(c)
}

// Cost counts what a stage takes on a device that does so many floating-point operations
// a second. It draws the stage's program and compiles nothing; dev may be a pure-Go one.
// ok is false for a stage that does not use the network.
func (r *Recipe) Cost(dev *device.Device, s Stage, rate float64) (c Cost, ok bool, err error) {
	net, err := r.Net()
	if err != nil {
		return c, false, err
	}
	var one device.Cost     // of Batch images
	var evaluations float64 // of single images, or steps on them
	switch {
	case s.Settings != nil:
		cfg, err := r.config(string(s.Kind), s.Settings)
		if err != nil {
			return c, false, err
		}
		c.Images, c.Batch = int(1000*cfg.Kimg), cfg.Batch
		evaluations = float64(c.Images)
		if cfg.Microbatch > 0 {
			c.Batch = min(c.Batch, cfg.Microbatch)
		}
		one, err = stepCost(dev, net, cfg, c.Batch)
		if err != nil {
			return c, false, err
		}
	case s.Kind == KindFID:
		n, err := r.FID.samples()
		if err != nil {
			return c, false, err
		}
		c.Images, c.Batch = n*len(r.FID.NFE), min(sampleBatch, n)
		for _, nfe := range r.FID.NFE {
			evaluations += float64(n * nfe)
		}
		model, err := kernels.NewModel(dev, kernels.UNet(net), nil)
		if err != nil {
			return c, false, err
		}
		defer model.Close()
		if one, err = model.EvaluateCost(c.Batch); err != nil {
			return c, false, err
		}
	default:
		return c, false, nil
	}
	c.FLOPs = float64(one.FLOPs) / float64(c.Batch) * evaluations
	c.Memory = one.Memory.Total()
	c.PerSec = rate / (c.FLOPs / float64(c.Images))
	c.Hours = c.FLOPs / rate / 3600
	return c, true, nil
}

// stepCost counts a step on n images. A basis of components is counted as the DCT one is:
// its products are next to nothing beside the network's.
func stepCost(dev *device.Device, net *unet.Net, cfg train.Config, n int) (device.Cost, error) {
	size := net.Config().ImgResolution
	b := basis.None(size, size)
	if cfg.Stage == train.Anisotropic {
		var err error
		if b, _, err = basis.Formula("dct", size, size, 0, nil); err != nil {
			return device.Cost{}, fmt.Errorf("recipe: %w", err)
		}
	}
	model, err := kernels.NewModel(dev, kernels.UNet(net), b)
	if err != nil {
		return device.Cost{}, err
	}
	defer model.Close()
	return model.StepCost(kernels.TrainerConfig{
		Mode: kernels.Mode(cfg.Estimator), TrainNetwork: *cfg.TrainNetwork, Estimate: cfg.Stage != train.Pretrain,
		Probe: cfg.Probe, Probes: cfg.Probes,
	}, n)
}
