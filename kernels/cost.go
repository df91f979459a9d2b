package kernels

import (
	"cmp"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// EvaluateCost returns the cost of evaluating the network on n images, with padding to the batch size. The graph is
// drawn and not compiled, so a model on the pure-Go device gives it on any machine.
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

// FitBatch returns the number of images to evaluate at a time: n, halved until the estimated memory is available, and
// at least 1.
func (m *Model) FitBatch(n int) int {
	available, known := m.dev.Available()
	for known && n > 1 {
		cost, err := m.EvaluateCost(n)
		if err != nil || cost.Memory.Total()-cost.Memory.Arguments <= available {
			break // a network that cannot be drawn fails when it runs
		}
		n /= 2
	}
	return n
}

// FLOPs of an evaluation above which a larger batch is hardly faster per image: half a second on two processors, two
// milliseconds on a GPU with 700 TFLOP/s.
const (
	hostWork        = 5e10
	acceleratedWork = 1.5e12
)

// Buckets are the sizes of the padded batches in which requests are evaluated, so that one or two compiled programs
// serve every request. They depend only on network and device, because the size of a batch may change the rounding.
type Buckets struct{ Small, Large int }

// Buckets returns the sizes of a model's batches: two on processors, where a padded row costs as much as any other, and
// one on an accelerator.
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

// bucketsFor returns the sizes for a network with flops operations per image: the smallest power of two that is enough
// work, reduced until it fits.
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

// StepCost returns the cost of a training step with all n images on the device at once. Nothing is compiled.
func (m *Model) StepCost(cfg TrainerConfig, n int) (device.Cost, error) {
	cfg, err := cfg.resolved(m)
	if err != nil {
		return device.Cost{}, err
	}
	return m.dev.Cost("step", func(g *graph.Graph) []*Node { return m.stepGraph(g, cfg, n) })
}

// StepMemory estimates the device memory in bytes for steps on n images, including the trainer's state. part is the
// number of images on the device at a time; 0 means all. ownLevels is set if steps have a [StepInput.NetworkG].
func (m *Model) StepMemory(cfg TrainerConfig, n, part int, ownLevels bool) (int64, error) {
	cfg, err := cfg.resolved(m)
	if err != nil {
		return 0, err
	}
	if part <= 0 || part > n {
		part = n
	}
	if part == n && !(ownLevels && cfg.TrainNetwork) {
		cost, err := m.StepCost(cfg, n)
		return cost.Memory.Total(), err
	}
	return m.partsMemory(cfg, n, part, ownLevels)
}

// partsMemory is StepMemory of stepInParts: what stays on the device, plus the most that one of its programs adds.
func (m *Model) partsMemory(cfg TrainerConfig, n, part int, ownLevels bool) (most int64, err error) {
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
	for _, job := range cfg.jobs(ownLevels) {
		add(state+noise+images, func(g *graph.Graph) []*Node { return m.partGraph(g, job, part) })
	}
	if cfg.TrainNetwork {
		add(state+noise, func(g *graph.Graph) []*Node { return m.applyGraph(g, cfg, n) })
	}
	return most, err
}
