package bench

import (
	"context"
	"encoding/binary"
	"hash"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// The optimiser of the steps: EDM's, at a rate so small that the network stays what it is.
const (
	learningRate = 1e-6
	emaBeta      = 0.9995
)

// stepProgram takes training steps of the whole network with one mode of the estimator.
type stepProgram struct {
	bench   *modelBench
	name    string
	cfg     kernels.TrainerConfig
	trainer *kernels.Trainer
	in      kernels.StepInput
}

func newStep(mode kernels.Mode) func(context.Context, *modelBench) (program, error) {
	return func(_ context.Context, b *modelBench) (program, error) {
		cfg := kernels.TrainerConfig{TrainNetwork: !b.frozen, Estimate: true, Mode: mode}
		return openStep(b, string(mode), cfg, b.inputs.omega)
	}
}

// newScoreStep takes steps on EDM's loss, which has no schedule.
func newScoreStep(_ context.Context, b *modelBench) (program, error) {
	return openStep(b, "score", kernels.TrainerConfig{TrainNetwork: true}, b.inputs.score)
}

func openStep(b *modelBench, name string, cfg kernels.TrainerConfig, omega []float64) (program, error) {
	s := &stepProgram{bench: b, name: name, cfg: cfg, in: kernels.StepInput{
		Images: b.inputs.images, Labels: b.inputs.labels, G: b.inputs.g, Omega: omega, LR: learningRate, EMABeta: emaBeta,
	}}
	if cfg.Mode == "" {
		s.cfg.Mode = kernels.LossOnly
	}
	var err error
	s.trainer, err = b.model.NewTrainer(cfg, b.source.Values)
	return s, err
}

func (s *stepProgram) run(ctx context.Context) error {
	s.in.Step++
	_, err := s.trainer.Step(ctx, s.in)
	return err
}

// outputs are the terms of the schedule's gradient, [B] each, at given noise: a step draws its own.
func (s *stepProgram) outputs(ctx context.Context) ([]safetensors.Tensor, error) {
	b := s.bench
	w, err := b.model.Upload(b.source.Values)
	if err != nil {
		return nil, err
	}
	defer w.Release()
	t, err := b.model.Estimate(ctx, w, kernels.EstimateInput{
		Mode: s.cfg.Mode, X0: b.inputs.images, Eps: b.inputs.eps, Probe: b.inputs.z, G: b.inputs.g, Omega: s.in.Omega,
		Labels: b.inputs.labels,
	})
	if err != nil {
		return nil, err
	}
	var out []safetensors.Tensor
	for _, term := range []struct {
		name   string
		values []float64
	}{
		{"residual", t.Residual},
		{"explicit_x", t.ExplicitX},
		{"implicit1", t.Implicit1},
		{"implicit2", t.Implicit2},
		{"implicit3", t.Implicit3},
	} {
		if term.values != nil {
			name := "output/step-" + s.name + "/" + term.name
			out = append(out, safetensors.FromFloat64s(name, []int{b.inputs.batch}, term.values))
		}
	}
	return out, nil
}

// memory returns what a step is estimated to take.
func (s *stepProgram) memory() (*device.Memory, error) {
	cost, err := s.bench.model.StepCost(s.cfg, s.bench.inputs.batch)
	if err != nil {
		return nil, err
	}
	return &cost.Memory, nil
}

func (s *stepProgram) close() error {
	s.trainer.Close()
	return nil
}

// digest writes the state that the steps so far have led to.
func (s *stepProgram) digest(ctx context.Context, h hash.Hash) error {
	state, err := s.trainer.Export(ctx)
	if err != nil {
		return err
	}
	for _, part := range [][][]float32{state.Params, state.M, state.V, state.EMA} {
		for _, values := range part {
			if err := binary.Write(h, binary.LittleEndian, values); err != nil {
				return err
			}
		}
	}
	return nil
}
