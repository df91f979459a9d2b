package nn

import "github.com/gomlx/gomlx/pkg/core/graph"

// SiLU returns x / (1 + e^{−x}), entry by entry.
func SiLU(x *Node) *Node { return graph.Mul(x, graph.Sigmoid(x)) }
