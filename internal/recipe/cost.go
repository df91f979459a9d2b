package recipe

import (
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

// Hardware is what costs are estimated for.
type Hardware struct {
	Rate   float64 // floating-point operations a second
	Memory int64   // bytes; 0: unknown
}

// Cost counts what a stage takes. It draws the stage's program on a device and compiles
// nothing; a pure-Go one will do. ok is false for a stage that does not use the network.
func (r *Recipe) Cost(dev *device.Device, s Stage, on Hardware) (c Cost, ok bool, err error) {
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
		c.Images = int(1000 * cfg.Kimg)
		evaluations = float64(c.Images)
		if c.Batch, c.Memory, one, err = stepCost(dev, net, cfg, on.Memory); err != nil {
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
		model, err := kernels.NewModel(dev, net, nil)
		if err != nil {
			return c, false, err
		}
		defer model.Close()
		if one, err = model.EvaluateCost(c.Batch); err != nil {
			return c, false, err
		}
		c.Memory = one.Memory.Total()
	default:
		return c, false, nil
	}
	c.FLOPs = float64(one.FLOPs) / float64(c.Batch) * evaluations
	c.PerSec = on.Rate / (c.FLOPs / float64(c.Images))
	c.Hours = c.FLOPs / on.Rate / 3600
	return c, true, nil
}

// stepCost counts the part of a step that the device sees at a time. A basis of components
// is counted as the DCT one is: its products are next to nothing beside the network's.
func stepCost(dev *device.Device, net *unet.Net, cfg train.Config, available int64) (part int, bytes int64,
	c device.Cost, err error,
) {
	size := net.Config().ImgResolution
	b := basis.None(size.Height, size.Width)
	if cfg.Stage == train.Anisotropic {
		if b, _, err = basis.Formula("dct", size.Height, size.Width, 0, nil); err != nil {
			return 0, 0, c, err
		}
	}
	model, err := kernels.NewModel(dev, net, b)
	if err != nil {
		return 0, 0, c, err
	}
	defer model.Close()
	fit, err := cfg.Fit(model, available)
	if err != nil {
		return 0, 0, c, err
	}
	c, err = model.StepCost(cfg.Trainer(), fit.Microbatch)
	return fit.Microbatch, fit.Needed, c, err
}
