package kernels

import (
	"context"
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// TrainerConfig says what a Trainer's step computes. Zero values mean defaults.
type TrainerConfig struct {
	Mode         Mode    // of the estimator; "" means Auto
	TrainNetwork bool    // update the network; else its parameters stay as they are
	Estimate     bool    // compute the estimator's terms
	Probe        string  // Rademacher (default), Sphere or Gaussian
	Probes       int     // probes averaged in Implicit1; 0 means 1
	Beta1        float64 // Adam; 0 means 0.9
	Beta2        float64 // Adam; 0 means 0.999
	Eps          float64 // Adam; 0 means 1e-8
}

func (c TrainerConfig) resolved(m *Model) (TrainerConfig, error) {
	mode, err := m.Resolve(c.Mode)
	if err != nil {
		return c, err
	}
	c.Mode = mode
	if !c.Estimate {
		c.Mode = LossOnly
	}
	if c.Probe == "" {
		c.Probe = Rademacher
	}
	if c.Probes == 0 {
		c.Probes = 1
	}
	for _, d := range []struct {
		v  *float64
		by float64
	}{{&c.Beta1, 0.9}, {&c.Beta2, 0.999}, {&c.Eps, 1e-8}} {
		if *d.v == 0 {
			*d.v = d.by
		}
	}
	if wrong := suggest.OneOf(c.Probe, Probes); wrong != "" {
		return c, inputf("Probe", "%s", wrong)
	}
	switch {
	case c.Probes < 0:
		return c, inputf("Probes", "must be at least 1, got %d", c.Probes)
	case !(c.Beta1 > 0 && c.Beta1 < 1 && c.Beta2 > 0 && c.Beta2 < 1 && c.Eps > 0):
		return c, inputf("Beta1, Beta2, Eps", "must lie in (0, 1), (0, 1) and above 0, got %g, %g, %g", c.Beta1,
			c.Beta2, c.Eps)
	case c.TrainNetwork && m.size == 0:
		return c, inputf("TrainNetwork", "must be false for a network without parameters")
	case !c.TrainNetwork && !c.Estimate:
		return c, inputf("Estimate", "must be true in a step that does not train")
	}
	return c, nil
}

// key names all of the configuration that a step's program depends on.
func (c TrainerConfig) key() string { return fmt.Sprintf("%+v", c) }

// Trainer owns the state of a network in training: parameters, Adam's moments and the exponential moving average,
// resident on the device and replaced in every step. It belongs to one goroutine; what it publishes does not.
type Trainer struct {
	model *Model
	cfg   TrainerConfig
	state []*device.Buffer // params, m, v, ema; params alone if the network is frozen
	count int64            // optimiser steps taken
	lost  bool
	flops int64 // of the step under way
	done  bool
}

// NewTrainer starts from the values init, in PyTorch's layout, with the moving average equal to them.
func (m *Model) NewTrainer(cfg TrainerConfig, init [][]float32) (*Trainer, error) {
	cfg, err := cfg.resolved(m)
	if err != nil {
		return nil, err
	}
	t := &Trainer{model: m, cfg: cfg}
	if err := t.Restore(&TrainerState{Params: init, EMA: init}); err != nil {
		return nil, err
	}
	return t, nil
}

// Mode returns what the estimator's mode resolved to.
func (t *Trainer) Mode() Mode {
	if !t.cfg.Estimate {
		return ""
	}
	return t.cfg.Mode
}

// TrainerState is the whole state of a Trainer, values in PyTorch's layout. M, V and EMA are nil where the network is
// frozen.
type TrainerState struct {
	Params, M, V, EMA [][]float32
	Count             int64 // optimiser steps taken, skipped ones not counted
}

// Export copies the state from the device.
func (t *Trainer) Export(ctx context.Context) (*TrainerState, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	s := &TrainerState{Count: t.count}
	for i, dst := range []*[][]float32{&s.Params, &s.M, &s.V, &s.EMA} {
		if i >= len(t.state) {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if *dst, err = t.model.downloadFlat(t.state[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Average returns a copy of the moving average (of the parameters, if the network is frozen) on the host, in PyTorch's
// layout.
func (t *Trainer) Average() ([][]float32, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	return t.model.downloadFlat(t.state[len(t.state)-1])
}

// Restore replaces the state. Nil moments mean zeros, a nil moving average the parameters. The old state stays if there
// is an error.
func (t *Trainer) Restore(s *TrainerState) error {
	if t.done {
		return ErrClosed
	}
	if s.Count < 0 {
		return inputf("Count", "must not be negative, got %d", s.Count)
	}
	parts := [][][]float32{s.Params}
	if t.cfg.TrainNetwork {
		parts = append(parts, s.M, s.V, s.EMA)
		if s.EMA == nil {
			parts[3] = s.Params
		}
	}
	var fresh []*device.Buffer
	flat := make([]float32, t.model.size) // one for all parts: they are large
	for i, values := range parts {
		var b *device.Buffer
		var err error
		if field := []string{"Params", "M", "V", "EMA"}[i]; values == nil && (field == "M" || field == "V") {
			clear(flat)
		} else {
			err = t.model.join(flat, field, values)
		}
		if err == nil && t.model.size > 0 {
			b, err = device.UploadAs(t.model.dev, t.model.dtype, flat, t.model.size)
		}
		if err != nil {
			releaseAll(fresh)
			return err
		}
		fresh = append(fresh, b)
	}
	releaseAll(t.state)
	t.state, t.count, t.lost = fresh, s.Count, false
	return nil
}

// Publish returns a copy of the moving average (of the parameters, if the network is frozen) for samplers. Training
// goes on beside it.
func (t *Trainer) Publish(ctx context.Context) (*Weights, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if t.model.size == 0 {
		return newWeights(t.model, nil), nil
	}
	flat, err := t.model.copyFlat(ctx, t.state[len(t.state)-1])
	if err != nil {
		return nil, err
	}
	return newWeights(t.model, flat), nil
}

// Count returns the number of optimiser steps taken.
func (t *Trainer) Count() int64 { return t.count }

// Close frees the device's memory. It may be called twice.
func (t *Trainer) Close() {
	if !t.done {
		t.done = true
		releaseAll(t.state)
	}
}

func (t *Trainer) usable() error {
	switch {
	case t.done:
		return ErrClosed
	case t.lost:
		return ErrStateLost
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
