package nn

import "github.com/gomlx/gomlx/pkg/core/graph"

// SiLU returns x / (1 + e^{−x}), entry by entry.
func SiLU(x *Node) *Node {
	wide := Wide(x)
	return narrow(graph.Mul(wide, graph.Sigmoid(wide)), x)
}
