package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// EvaluateCost returns what one evaluation of the network on n images takes, at the
// batch size that it is computed at. The graph is drawn and not compiled, so that a
// model on a pure-Go device tells it on any machine.
func (m *Model) EvaluateCost(n int) (device.Cost, error) {
	batch := Bucket(n)
	return m.dev.Cost("evaluate", func(g *graph.Graph) []*Node { return m.evaluateGraph(g, batch) })
}

// StepCost returns what a training step on n images takes, all of them on the device at
// once. As EvaluateCost it compiles nothing.
func (m *Model) StepCost(cfg TrainerConfig, n int) (device.Cost, error) {
	cfg, err := cfg.resolved(m)
	if err != nil {
		return device.Cost{}, err
	}
	return m.dev.Cost("step", func(g *graph.Graph) []*Node { return m.stepGraph(g, cfg, n) })
}
