package modelbench

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// The optimiser of the steps: EDM's, at a rate so small that the network stays what it is.
const (
	learningRate = 1e-6
	emaBeta      = 0.9995
)

// stepWork takes training steps of the whole network with one mode of the estimator.
type stepWork struct {
	bench   *Bench
	mode    kernels.Mode
	trainer *kernels.Trainer
	in      kernels.StepInput
}

func newStep(mode kernels.Mode) func(context.Context, *Bench) (work, error) {
	return func(_ context.Context, b *Bench) (work, error) {
		s := &stepWork{bench: b, mode: mode, in: kernels.StepInput{
			Images: b.in.images, Labels: b.in.labels, G: b.in.g, Omega: b.in.omega, LR: learningRate, EMABeta: emaBeta,
		}}
		cfg := kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: mode}
		if mode == kernels.LossOnly {
			cfg = kernels.TrainerConfig{TrainNetwork: true}
			s.in.Omega = b.in.score
		}
		var err error
		s.trainer, err = b.model.NewTrainer(cfg, b.source.Values)
		return s, err
	}
}

func (s *stepWork) run(ctx context.Context) error {
	s.in.Step++
	_, err := s.trainer.Step(ctx, s.in)
	return err
}

// outputs are the terms of the schedule's gradient, [B] each, at given noise: a step draws its own.
func (s *stepWork) outputs(ctx context.Context) ([]safetensors.Tensor, error) {
	b := s.bench
	w, err := b.model.Upload(b.source.Values)
	if err != nil {
		return nil, err
	}
	defer w.Release()
	t, err := b.model.Estimate(ctx, w, kernels.EstimateInput{
		Mode: s.mode, X0: b.in.images, Eps: b.in.eps, Probe: b.in.z, G: b.in.g, Omega: s.in.Omega, Labels: b.in.labels,
	})
	if err != nil {
		return nil, err
	}
	var out []safetensors.Tensor
	for _, term := range []struct {
		name   string
		values []float64
	}{
		{"residual", t.Residual}, {"explicit_x", t.ExplicitX},
		{"implicit1", t.Implicit1}, {"implicit2", t.Implicit2}, {"implicit3", t.Implicit3},
	} {
		if term.values != nil {
			out = append(out, safetensors.FromFloat64s("output/step-"+stage(s.mode)+"/"+term.name, []int{b.in.batch}, term.values))
		}
	}
	return out, nil
}

// stage is the mode's name in that of the program.
func stage(mode kernels.Mode) string {
	if mode == kernels.LossOnly {
		return "score"
	}
	return string(mode)
}

func (s *stepWork) memory(ctx context.Context) (device.Memory, bool, error) {
	return s.trainer.Memory(ctx, s.bench.in.batch)
}

func (s *stepWork) close() { s.trainer.Close() }
