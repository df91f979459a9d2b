package nn

import "github.com/gomlx/gomlx/pkg/core/graph"

// Dropout zeroes every entry of x with probability rate and scales the others by
// 1/(1−rate), in training. Otherwise, and at rate zero, it returns x and leaves
// the random state alone.
func Dropout(s *Scope, x *Node, rate float64) *Node {
	if !s.Training() || rate <= 0 {
		return x
	}
	kept := s.keep(x, rate)
	return graph.Where(kept, graph.MulScalar(x, 1/(1-rate)), graph.ZerosLike(x))
}

// DropRows zeroes every row of x [B, n] with probability rate, in training, and
// leaves the others as they are: EDM's label dropout.
func DropRows(s *Scope, x *Node, rate float64) *Node {
	if !s.Training() || rate <= 0 {
		return x
	}
	rows := graph.ReduceAndKeep(x, graph.ReduceSum, 1)
	kept := graph.BroadcastToDims(s.keep(rows, rate), x.Shape().Dimensions...)
	return graph.Where(kept, x, graph.ZerosLike(x))
}

// keep draws a boolean for each entry of like, true with probability 1−rate.
func (s *Scope) keep(like *Node, rate float64) *Node {
	var u *Node
	s.RNG, u = graph.RandomUniform(s.RNG, Wide(like).Shape())
	return graph.GreaterOrEqual(u, graph.Scalar(u.Graph(), u.DType(), rate))
}
