package kernels

import (
	"cmp"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// EvaluateCost returns what one evaluation of the network on n images takes, at the batch size that it is computed at.
// The graph is drawn and not compiled, so that a model on a pure-Go device tells it on any machine.
func (m *Model) EvaluateCost(n int) (device.Cost, error) {
	batch := Bucket(n)
	if known, ok := m.costs.Load(batch); ok {
		return known.(device.Cost), nil
	}
	cost, err := m.dev.Cost("evaluate", func(g *graph.Graph) []*Node { return m.evaluateGraph(g, batch) })
	if err == nil {
		m.costs.Store(batch, cost)
	}
	return cost, err
}

// FitBatch returns how many of n images to evaluate at a time: n halved until an estimate says that the evaluation fits
// the device's memory, and no less than 1.
func (m *Model) FitBatch(n int) int {
	available, known := m.dev.Available()
	for known && n > 1 {
		cost, err := m.EvaluateCost(n)
		if err != nil || cost.Memory.Total()-cost.Memory.Arguments <= available {
			break // what cannot be drawn has its error when it is run
		}
		n /= 2
	}
	return n
}

// StepCost returns what a training step on n images takes, all of them on the device at once. As EvaluateCost it
// compiles nothing.
func (m *Model) StepCost(cfg TrainerConfig, n int) (device.Cost, error) {
	cfg, err := cfg.resolved(m)
	if err != nil {
		return device.Cost{}, err
	}
	return m.dev.Cost("step", func(g *graph.Graph) []*Node { return m.stepGraph(g, cfg, n) })
}

// StepMemory estimates how many bytes of device memory steps on n images take, all that the trainer keeps included,
// with part of them on the device at a time; 0 means all. own says that the network is trained at noise levels of its
// own ([StepInput.NetworkG]).
func (m *Model) StepMemory(cfg TrainerConfig, n, part int, own bool) (int64, error) {
	cfg, err := cfg.resolved(m)
	if err != nil {
		return 0, err
	}
	if part <= 0 || part > n {
		part = n
	}
	if part == n && !(own && cfg.TrainNetwork) {
		cost, err := m.StepCost(cfg, n)
		return cost.Memory.Total(), err
	}
	return m.partsMemory(cfg, n, part, own)
}

// partsMemory is StepMemory of stepInParts: what lies on the device all the time, and the most that one of its programs
// adds.
func (m *Model) partsMemory(cfg TrainerConfig, n, part int, own bool) (most int64, err error) {
	value := int64(m.dtype.Size())
	state := int64(m.size) * value // params, and with them m, v, ema and the sum of gradients
	if cfg.TrainNetwork {
		state *= 5
	}
	images := int64(part*m.Pixels()) * value
	noise := images * int64((n+part-1)/part*(1+cfg.probesOf(cfg.Mode)))
	add := func(resident int64, draw func(g *graph.Graph) []*Node) {
		cost, failed := m.dev.Cost("part", draw)
		err = cmp.Or(err, failed)
		most = max(most, resident+cost.Memory.Total()-cost.Memory.Arguments)
	}
	add(state, func(g *graph.Graph) []*Node { return m.noiseGraph(g, cfg, n, part) })
	for _, job := range cfg.jobs(own) {
		add(state+noise+images, func(g *graph.Graph) []*Node { return m.partGraph(g, job, part) })
	}
	if cfg.TrainNetwork {
		add(state+noise, func(g *graph.Graph) []*Node { return m.applyGraph(g, cfg, n) })
	}
	return most, err
}
