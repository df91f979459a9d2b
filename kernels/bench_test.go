package kernels_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// digits is the network of the digits recipe: 8×8×1 images, ten classes, 16
// channels, 0.19 M parameters.
func digits(b *testing.B) (*kernels.Model, [][]float32) {
	b.Helper()
	cfg := unet.Defaults("SongUNet")
	cfg.ImgResolution, cfg.ImgChannels, cfg.LabelDim = kernels.Square(8), 1, 10
	cfg.ModelChannels, cfg.ChannelMult, cfg.NumBlocks, cfg.AttnResolutions = 16, []int{1, 2}, 1, []int{4}
	cfg.AugmentDim = 0
	net, err := unet.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	m, err := kernels.NewModel(devicetest.Open(b), net, nil)
	if err != nil {
		b.Fatal(err)
	}
	return m, net.Init(1)
}

// batch returns 128 images at EDM's training noise levels.
func batch(m *kernels.Model) kernels.StepInput {
	const n = 128
	rng := rand.New(rand.NewPCG(1, 0))
	in := kernels.StepInput{Images: make([]float32, n*m.Pixels()), LR: 1e-3, EMABeta: 0.99}
	for i := range in.Images {
		in.Images[i] = float32(2*rng.Float64() - 1)
	}
	for range n {
		g := math.Exp(2 * (-1.2 + 1.2*rng.NormFloat64()))
		in.Labels, in.G, in.Omega = append(in.Labels, int32(rng.IntN(10))), append(in.G, g), append(in.Omega, m.EDMWeight(g))
	}
	return in
}

// BenchmarkDevices is a training step of the digits recipe at batch 128: on four devices of the host, and on one that
// takes the batch in four parts, in turns. The metric is the first's time as a share of the second's.
func BenchmarkDevices(b *testing.B) {
	devices := devicetest.Several(b)
	like, init := digits(b)
	m, err := kernels.NewModel(devices[0], like.Network(), nil)
	if err != nil {
		b.Fatal(err)
	}
	in := batch(m)
	in.Part = 32
	var took [2]time.Duration
	var of [2]*kernels.Replicas
	for k, n := range []int{4, 1} {
		if of[k], err = m.NewReplicas(devices[:n], kernels.TrainerConfig{TrainNetwork: true}, init); err != nil {
			b.Fatal(err)
		}
		defer of[k].Close()
	}
	step := func() {
		in.Step++
		for k, r := range of {
			began := time.Now()
			if _, err := r.Step(context.Background(), in); err != nil {
				b.Fatal(err)
			}
			took[k] += time.Since(began)
		}
	}
	step() // compiles
	clear(took[:])
	for b.Loop() {
		step()
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "four/one")
}
