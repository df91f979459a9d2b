package nn

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// What an image's type decides. Parameters are float32 (float64 in tests) and an
// image may be bfloat16. Then convolutions and matrix products take their weights
// in bfloat16 too; what is summed over many entries (norms, softmax, and in reverse
// mode the gradients of biases) is computed in float32 and rounded once. Adjoints
// have the types of what they belong to, so that all of this holds for derivatives
// of every order. With images in float32 the conversions below append nothing.

// Wide returns x in float32 if it is bfloat16, else x itself.
func Wide(x *Node) *Node {
	if x.DType() == dtypes.BFloat16 {
		return graph.ConvertDType(x, dtypes.Float32)
	}
	return x
}

// narrow returns y in the type of x.
func narrow(y, x *Node) *Node { return graph.ConvertDType(y, x.DType()) }

// Like returns the named parameter in the type of x, to be multiplied with it.
func (s *Scope) Like(x *Node, name string) *Node { return narrow(s.Param(name), x) }

// Shift returns x + v in the type of x, where v is wide and may be broadcast.
func Shift(x, v *Node) *Node { return narrow(graph.Add(Wide(x), v), x) }

// Scale returns x · v in the type of x, where v is wide and may be broadcast.
func Scale(x, v *Node) *Node { return narrow(graph.Mul(Wide(x), v), x) }
