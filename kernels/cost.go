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

// What an evaluation must take, in floating-point operations, so that a larger batch computes hardly more images a
// second: half a second on two processors, two milliseconds on a GPU that does 700 TFLOP/s.
const (
	hostWork        = 5e10
	acceleratedWork = 1.5e12
)

// Buckets are the sizes of the batches that requests are evaluated in, padded: so one or two compiled programs serve
// every request. They depend on the network and on the device alone, not on what else is there, since the size of a
// batch may change the rounding.
type Buckets struct{ Small, Large int }

// Buckets returns the sizes of a model's batches. On processors, where a padded row costs as much as a true one, there
// are two; on an accelerator, whose rows are computed side by side, it is one.
func (m *Model) Buckets() Buckets {
	m.bucketsOnce.Do(func() {
		const few = 8
		var flops float64 // of an image
		if cost, err := m.EvaluateCost(few); err == nil {
			flops = float64(cost.FLOPs) / few
		}
		capacity, known := m.dev.Capacity()
		m.buckets = bucketsFor(flops, !m.dev.HostVisible(), func(n int) bool {
			cost, err := m.EvaluateCost(n)
			return err != nil || !known || cost.Memory.Total()-cost.Memory.Arguments <= capacity/2
		})
	})
	return m.buckets
}

// bucketsFor returns the sizes of the batches of a network of flops operations an image: the least power of two that is
// enough work, and that fits.
func bucketsFor(flops float64, accelerated bool, fits func(n int) bool) Buckets {
	b, most, work := Buckets{Small: 8, Large: 8}, 64, hostWork
	if accelerated {
		b.Large, most, work = 1, 256, acceleratedWork
	}
	for b.Large < most && float64(b.Large)*flops < work {
		b.Large *= 2
	}
	for b.Large > 1 && !fits(b.Large) {
		b.Large /= 2
	}
	if accelerated || b.Large < b.Small {
		b.Small = b.Large
	}
	return b
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
