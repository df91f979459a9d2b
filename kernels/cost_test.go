package kernels_test

import (
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// TestCostsOfStepsAreMultiplesOfTheNetworks: what each kind of step computes, in evaluations of a network without
// attention. Every convolution's reverse pass is one convolution for its input and one for its kernel.
func TestCostsOfStepsAreMultiplesOfTheNetworks(t *testing.T) {
	cfg := unet.Defaults(unet.SongUNet)
	cfg.ImgResolution, cfg.ImgChannels, cfg.ModelChannels = kernels.Square(8), 1, 32
	cfg.ChannelMult, cfg.NumBlocks, cfg.AttnResolutions = []int{1, 2}, 1, nil
	net, err := unet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := kernels.NewModel(devicetest.PureGo(t), net, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const n = 8
	forward, err := m.EvaluateCost(n)
	if err != nil {
		t.Fatal(err)
	}
	if one, err := m.EvaluateCost(1); err != nil || forward.FLOPs != n*one.FLOPs {
		t.Errorf("%d images take %d operations, one %d (error %v)", n, forward.FLOPs, one.FLOPs, err)
	}
	for _, c := range []struct {
		name      string
		cfg       kernels.TrainerConfig
		low, high float64 // in evaluations: the layers at the ends have less to do
	}{
		{"pretrain", kernels.TrainerConfig{TrainNetwork: true}, 2.9, 3},
		{"frozen explicit", kernels.TrainerConfig{Estimate: true, Mode: kernels.Explicit}, 1.9, 2},
		{"explicit", kernels.TrainerConfig{Estimate: true, Mode: kernels.Explicit, TrainNetwork: true}, 2.9, 3},
		{"backprop", kernels.TrainerConfig{Estimate: true, Mode: kernels.Backprop, TrainNetwork: true}, 2.9, 3},
		{"frozen full", kernels.TrainerConfig{Estimate: true, Mode: kernels.Full}, 3.7, 4},
		{"full", kernels.TrainerConfig{Estimate: true, Mode: kernels.Full, TrainNetwork: true}, 4.7, 5},
		{
			"full, two probes",
			kernels.TrainerConfig{Estimate: true, Mode: kernels.Full, TrainNetwork: true, Probes: 2},
			6.5,
			7,
		},
	} {
		cost, err := m.StepCost(c.cfg, n)
		if err != nil {
			t.Fatal(err)
		}
		if ratio := float64(cost.FLOPs) / float64(forward.FLOPs); !(ratio > c.low && ratio <= c.high) {
			t.Errorf("%s: %.3f evaluations, want %g to %g", c.name, ratio, c.low, c.high)
		}
	}
}
