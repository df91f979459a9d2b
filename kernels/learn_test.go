package kernels_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// TestNetworkLearns trains the smallest UNet, with dropout of features and of
// labels, on two images that the label tells apart, while samplers use what is
// published.
func TestNetworkLearns(t *testing.T) {
	t.Parallel()
	cfg := unet.Defaults("SongUNet")
	cfg.ImgResolution, cfg.ImgChannels, cfg.LabelDim, cfg.AugmentDim = kernels.Square(4), 1, 2, 0
	cfg.ModelChannels, cfg.ChannelMult, cfg.NumBlocks, cfg.AttnResolutions = 8, []int{1}, 1, nil
	cfg.Dropout, cfg.LabelDropout = 0.1, 0.1
	net, err := unet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := kernels.NewModel(devicetest.Open(t), net, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainer := newTrainer(t, m, kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Backprop},
		net.Init(1))
	rng := rand.New(rand.NewPCG(1, 0))
	const n = 32
	batch := func(step int64) kernels.StepInput {
		in := kernels.StepInput{Seed: 3, Step: step, LR: 1e-2, EMABeta: 0.9}
		for i := range n {
			sign := float32(1 - 2*(i%2))
			for p := range 16 {
				in.Images = append(in.Images, sign*float32(p%4)/4)
			}
			g := math.Exp(2 * (-1.2 + 1.2*rng.NormFloat64()))
			in.Labels, in.G, in.Omega = append(in.Labels, int32(i%2)), append(in.G, g), append(in.Omega, m.EDMWeight(g))
		}
		return in
	}
	mean := func(x []float64) (s float64) {
		for _, v := range x {
			s += v / float64(len(x))
		}
		return s
	}

	// Dropout is a function of (seed, step) like all noise.
	first, same := batch(0), newTrainer(t, m, kernels.TrainerConfig{
		TrainNetwork: true, Estimate: true,
		Mode: kernels.Backprop,
	}, net.Init(1))
	start := mustStep(t, trainer, first)
	if !reflect.DeepEqual(mustStep(t, same, first), start) {
		t.Error("the same step from the same state differs")
	}

	var last float64
	var samplers sync.WaitGroup
	for step := range int64(80) {
		last = mean(mustStep(t, trainer, batch(step+1)).Loss)
		if step%20 != 0 {
			continue
		}
		w, err := trainer.Publish(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		samplers.Go(func() {
			defer w.Release()
			tr, err := m.NewTrajectory(context.Background(), w, make([]float32, 16), []int32{0}, 1)
			if err != nil {
				t.Error(err)
				return
			}
			defer tr.Close()
			for range 10 {
				if err := errors.Join(tr.Evaluate(context.Background(), []float64{1}),
					tr.Combine(context.Background(), []float64{1}, []float64{-0.1})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	samplers.Wait()
	if before := mean(start.Loss); !(last < 0.4*before) {
		t.Errorf("80 steps took the loss from %g to %g", before, last)
	} else {
		t.Logf("loss %g → %g", before, last)
	}
}
