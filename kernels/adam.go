package kernels

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// optimiserState is the state of the network's optimiser in a graph: flat
// tensors of all parameters.
type optimiserState struct{ params, m, v, ema *Node }

func (s optimiserState) nodes() []*Node { return []*Node{s.params, s.m, s.v, s.ema} }

// rates are the scalars of one optimiser step. They are computed on the host in
// float64: 1 − β^t cancels in float32.
func rates(cfg TrainerConfig, count int64, lr, emaBeta float64) []float64 {
	t := float64(count + 1)
	return []float64{
		lr / (1 - math.Pow(cfg.Beta1, t)),
		1 / (1 - math.Pow(cfg.Beta2, t)),
		1 - emaBeta,
	}
}

// adam appends one step of Adam (Kingma and Ba, arXiv 1412.6980) and of the
// moving average,
//
//	m ← β₁ m + (1−β₁) g     v ← β₂ v + (1−β₂) g²
//	p ← p − lr/(1−β₁^t) · m / ( √(v/(1−β₂^t)) + eps )
//	ema ← ema + (1−β) (p − ema)
//
// everything unchanged unless ok. rate holds the three scalars of rates.
func adam(cfg TrainerConfig, s optimiserState, grad, rate, ok *Node) optimiserState {
	at := func(i int) *Node { return graph.Reshape(graph.Slice(rate, graph.AxisRange(i, i+1))) }
	m := graph.Add(graph.MulScalar(s.m, cfg.Beta1), graph.MulScalar(grad, 1-cfg.Beta1))
	v := graph.Add(graph.MulScalar(s.v, cfg.Beta2), graph.MulScalar(graph.Square(grad), 1-cfg.Beta2))
	step := graph.Div(m, graph.AddScalar(graph.Sqrt(graph.Mul(v, at(1))), cfg.Eps))
	p := graph.Sub(s.params, graph.Mul(step, at(0)))
	ema := graph.Add(s.ema, graph.Mul(graph.Sub(p, s.ema), at(2)))
	return optimiserState{
		params: choose(ok, p, s.params), m: choose(ok, m, s.m),
		v: choose(ok, v, s.v), ema: choose(ok, ema, s.ema),
	}
}

// choose returns a where the scalar ok holds, else b.
func choose(ok, a, b *Node) *Node {
	return graph.Where(graph.BroadcastToDims(ok, a.Shape().Dimensions...), a, b)
}
