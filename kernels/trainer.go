package kernels

import (
	"cmp"
	"context"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/collective"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// TrainerConfig says what a Trainer's step computes. Zero values mean defaults.
type TrainerConfig struct {
	Mode         Mode    // of the estimator; "" means Auto
	TrainNetwork bool    // update the network; otherwise it is frozen
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
	c.Probe, c.Probes = cmp.Or(c.Probe, Rademacher), cmp.Or(c.Probes, 1)
	c.Beta1, c.Beta2, c.Eps = cmp.Or(c.Beta1, 0.9), cmp.Or(c.Beta2, 0.999), cmp.Or(c.Eps, 1e-8)
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

// probesOf returns the number of probes for a mode.
func (c TrainerConfig) probesOf(mode Mode) int {
	if mode.probed() {
		return c.Probes
	}
	return 0
}

// Trainer owns the state of a network in training: parameters, Adam's moments and the exponential moving average. The
// state stays on the device and every step replaces it. A Trainer belongs to one goroutine; what it publishes does not.
//
// With several devices, each has the whole state, computes some of the parts of a batch ([StepInput.Part]), and
// updates its state by the gradient of all parts, so that all states stay equal. A batch of one part is computed by
// every device.
//
// In round r device k of N computes part rN + k, and the sum of gradients s becomes
//
//	s ← (s + ∇_{rN}) + ∇_{rN+1} + … + ∇_{rN+N−1}
//
// On XLA for CPU [collective.Sum] adds in this order, so the bits are those of one device for any N. On GPUs the
// collective library chooses the order within a round.
//
// With several processes of M devices, device k of process i is device iM + k above, and [collective.Across] adds.
// Every process takes the same steps, each with the whole batch.
type Trainer struct {
	cfg      TrainerConfig
	model    *Model // on the first device
	replicas []*replica
	count    int64 // optimiser steps taken
	lost     bool  // see ErrStateLost
	closed   bool

	world  *processes.World // nil for a single process
	across *collective.Across
	norm   float64 // of the previous gradient
}

// replica is a Trainer's share on one device.
type replica struct {
	model *Model
	state []*device.Buffer // params, m, v, ema; params alone if the network is frozen

	// of the current step
	flops int64
	noise [][]*device.Buffer // ε and the probes of all parts
	sum   *device.Buffer     // of the parameters' gradients; nil if the network is frozen
}

// NewTrainer starts from the values init, in PyTorch's layout, with the moving average equal to them. It trains on the
// model's device and on others, which are the next ones of the same backend.
func (m *Model) NewTrainer(cfg TrainerConfig, init [][]float32, others ...*device.Device) (*Trainer, error) {
	cfg, err := cfg.resolved(m)
	if err != nil {
		return nil, err
	}
	t := &Trainer{cfg: cfg, model: m, replicas: []*replica{{model: m}}}
	for _, dev := range others {
		other, err := m.OnDevice(dev)
		if err != nil {
			return nil, err
		}
		t.replicas = append(t.replicas, &replica{model: other})
	}
	if err := t.Restore(&TrainerState{Params: init, EMA: init}); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Join makes one trainer of those of several processes, before their first step. Every process has the same number of
// devices.
func (t *Trainer) Join(w *processes.World) { t.world, t.across = w, &collective.Across{World: w} }

// Len returns the number of devices of all processes.
func (t *Trainer) Len() int { return len(t.replicas) * t.world.Size() }

// TrainerState is the whole state of a Trainer, with values in PyTorch's layout. M, V and EMA are nil if the network is
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
	parts := []*[][]float32{&s.Params, &s.M, &s.V, &s.EMA}
	for i, b := range t.replicas[0].state {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if *parts[i], err = t.model.downloadFlat(b); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// average returns the moving average, or the parameters if the network is frozen.
func (t *Trainer) average() *device.Buffer {
	state := t.replicas[0].state
	return state[len(state)-1]
}

// Average returns a copy of the moving average (of the parameters, if the network is frozen) on the host, in PyTorch's
// layout.
func (t *Trainer) Average() ([][]float32, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	return t.model.downloadFlat(t.average())
}

// Publish returns a copy of the moving average (of the parameters, if the network is frozen) for samplers. Later steps
// do not change it.
func (t *Trainer) Publish(ctx context.Context) (*Weights, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if t.model.size == 0 {
		return newWeights(t.model, nil), nil
	}
	flat, err := t.model.copyFlat(ctx, t.average())
	if err != nil {
		return nil, err
	}
	return newWeights(t.model, flat), nil
}

// Restore replaces the state. Nil moments mean zeros, a nil moving average the parameters. If there is an error, the
// state does not change.
func (t *Trainer) Restore(s *TrainerState) error {
	if t.closed {
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
	fresh := make([][]*device.Buffer, len(t.replicas))
	flat := make([]float32, t.model.size) // one for all parts: they are large
	for i, values := range parts {
		clear(flat)
		var err error
		if values != nil || i == 0 {
			err = t.model.join(flat, []string{"Params", "M", "V", "EMA"}[i], values)
		}
		for k, r := range t.replicas {
			var b *device.Buffer
			if err == nil {
				b, err = r.model.uploadFlat(flat)
			}
			fresh[k] = append(fresh[k], b)
		}
		if err != nil {
			for _, state := range fresh {
				releaseAll(state)
			}
			return err
		}
	}
	for k, r := range t.replicas {
		releaseAll(r.state)
		r.state = fresh[k]
	}
	t.count, t.lost = s.Count, false
	return nil
}

// Close frees the devices' memory. It may be called twice.
func (t *Trainer) Close() {
	if t.closed {
		return
	}
	t.closed = true
	for _, r := range t.replicas {
		releaseAll(r.state)
	}
}

func (t *Trainer) usable() error {
	switch {
	case t.closed:
		return ErrClosed
	case t.lost:
		return ErrStateLost
	}
	return nil
}
