package kernels

import (
	"cmp"
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// optimiserState is the state of the network's optimiser in a graph: flat tensors of all parameters.
type optimiserState struct{ params, m, v, ema *Node }

// moments declares the optimiser's state next to the parameters' values. Runs donate all of it.
func (f *frame) moments(params *Node) optimiserState {
	flat := func(name string) *Node { return f.param(device.Donated(name), f.model.size) }
	return optimiserState{params: params, m: flat("m"), v: flat("v"), ema: flat("ema")}
}

// rates returns the scalars of one optimiser step, computed on the host in float64: 1 − β^t cancels in float32.
func (t *Trainer) rates(in StepInput) []float64 {
	count := float64(t.count + 1)
	return []float64{
		in.LR / (1 - math.Pow(t.cfg.Beta1, count)),
		1 / (1 - math.Pow(t.cfg.Beta2, count)),
		1 - in.EMABeta,
		cmp.Or(in.Clip, math.Inf(1)),
	}
}

// scalar returns value i of a vector.
func scalar(vector *Node, i int) *Node {
	return graph.Reshape(graph.Slice(vector, graph.AxisRange(i, i+1)))
}

// adamOn appends a step of adam on the gradient, clipped to the norm in rates. It returns the new state and the norm
// before clipping [1]. If the norm is not finite, the state does not change.
func adamOn(cfg TrainerConfig, s optimiserState, grad, rate *Node) []*Node {
	norm := graph.Sqrt(graph.ReduceAllSum(graph.Square(grad)))
	scale := graph.Min(graph.Div(scalar(rate, 3), norm), graph.OnesLike(norm))
	next := adam(cfg, s, graph.Mul(grad, scale), rate, graph.IsFinite(norm))
	return []*Node{next.params, next.m, next.v, next.ema, graph.Reshape(norm, 1)}
}

// adam appends one step of Adam (Kingma and Ba, arXiv 1412.6980) and of the moving average,
//
//	m ← β₁ m + (1−β₁) g     v ← β₂ v + (1−β₂) g²
//	p ← p − lr/(1−β₁^t) · m / ( √(v/(1−β₂^t)) + eps )
//	ema ← ema + (1−β) (p − ema)
//
// and nothing changes unless ok. rate holds the scalars of rates.
func adam(cfg TrainerConfig, s optimiserState, grad, rate, ok *Node) optimiserState {
	m := graph.Add(graph.MulScalar(s.m, cfg.Beta1), graph.MulScalar(grad, 1-cfg.Beta1))
	v := graph.Add(graph.MulScalar(s.v, cfg.Beta2), graph.MulScalar(graph.Square(grad), 1-cfg.Beta2))
	step := graph.Div(m, graph.AddScalar(graph.Sqrt(graph.Mul(v, scalar(rate, 1))), cfg.Eps))
	p := graph.Sub(s.params, graph.Mul(step, scalar(rate, 0)))
	ema := graph.Add(s.ema, graph.Mul(graph.Sub(p, s.ema), scalar(rate, 2)))
	return optimiserState{
		params: choose(ok, p, s.params), m: choose(ok, m, s.m),
		v: choose(ok, v, s.v), ema: choose(ok, ema, s.ema),
	}
}

// choose returns a if the scalar ok is true, else b.
func choose(ok, a, b *Node) *Node {
	return graph.Where(graph.BroadcastToDims(ok, a.Shape().Dimensions...), a, b)
}
