package kernels

import "context"

// TrainerConfig says what a Trainer's step computes. Zero values mean defaults.
type TrainerConfig struct {
	Mode         Mode    // of the estimator; "" means Auto
	TrainNetwork bool    // update the network
	Estimate     bool    // compute the estimator's terms
	Probe        string  // "rademacher" (default), "sphere" or "gaussian"
	Probes       int     // probes averaged in Implicit1; 0 means 1
	Beta1        float64 // Adam; 0 means 0.9
	Beta2        float64 // Adam; 0 means 0.999
	Eps          float64 // Adam; 0 means 1e-8
}

// Trainer owns the state of a network in training: parameters, Adam's moments
// and the exponential moving average, resident on the device. It belongs to one
// goroutine.
type Trainer struct{}

// NewTrainer starts from the values init, in PyTorch's layout.
func (m *Model) NewTrainer(cfg TrainerConfig, init [][]float32) (*Trainer, error) {
	return &Trainer{}, nil
}

// StepInput is one training batch.
type StepInput struct {
	Images []float32 // [B, H, W, C] in [−1, 1]
	Labels []int32   // [B], −1 for none; nil for all −1
	G      []float64 // [B*J] noise variances
	Omega  []float64 // [B*J] weights of the loss Σ_j ω_j |P_j r|²

	Seed uint64 // with Step, determines noise, probes and dropout
	Step int64

	LR      float64 // learning rate of this step
	EMABeta float64 // decay of the moving average: ema ← β ema + (1−β) params
}

// StepOutput is what a step reports.
type StepOutput struct {
	Terms    *Terms    // Residual always; the rest if TrainerConfig.Estimate
	Loss     []float64 // [B] per sample, Σ_j ω_j |P_j r|² summed over pixels
	GradNorm float64   // of the network's gradient; 0 if it is frozen
	Skipped  bool      // a gradient was not finite: nothing was updated
}

// Step takes one optimiser step on the batch mean of the per-sample loss.
func (t *Trainer) Step(ctx context.Context, in StepInput) (StepOutput, error) {
	return StepOutput{}, nil
}

// TrainerState is the whole state of a Trainer, values in PyTorch's layout.
type TrainerState struct {
	Params, M, V, EMA [][]float32
	Count             int64 // optimiser steps taken, skipped ones not counted
}

// Export copies the state from the device.
func (t *Trainer) Export(ctx context.Context) (*TrainerState, error) { return &TrainerState{}, nil }

// Restore replaces the state.
func (t *Trainer) Restore(s *TrainerState) error { return nil }

// Publish returns a copy of the moving average, for samplers.
func (t *Trainer) Publish(ctx context.Context) (*Weights, error) { return &Weights{}, nil }

// Close frees the device's memory. It may be called twice.
func (t *Trainer) Close() {}
