package nn

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

// Node is a value in a computation graph.
type Node = graph.Node

// Scope is what a network needs to append itself to a graph: the nodes of its parameters by name and, in training, a
// random state.
type Scope struct {
	// RNG is the random state in training, as of graph.RNGStateFromSeed. If it is nil, random layers (dropout) are not
	// active. Every random layer advances it, so that afterwards it is the state to continue with.
	RNG *Node

	params map[string]*Node
}

// NewScope returns the scope in which params[i] is nodes[i], of shape params[i].DeviceShape(). It panics if counts or
// shapes differ.
func NewScope(params []Param, nodes []*Node) *Scope {
	autodiff.Install()
	if len(params) != len(nodes) {
		panic(fmt.Sprintf("nn: %d nodes for %d parameters", len(nodes), len(params)))
	}
	s := &Scope{params: make(map[string]*Node, len(params))}
	for i, p := range params {
		if err := nodes[i].Shape().CheckDims(p.DeviceShape()...); err != nil {
			panic(fmt.Sprintf("nn: parameter %s: %v", p.Name, err))
		}
		n := nodes[i]
		if p.Frozen {
			n = graph.StopGradient(n)
		}
		s.params[p.Name] = n
	}
	return s
}

// Training reports whether random layers are active.
func (s *Scope) Training() bool { return s.RNG != nil }

// Param returns the node of the named parameter. It panics if there is none.
func (s *Scope) Param(name string) *Node {
	n, ok := s.params[name]
	if !ok {
		panic("nn: no parameter " + name)
	}
	return n
}

// Precision. Parameters are float32 (float64 in tests), and an image may be bfloat16. Then convolutions and matrix
// products convert their weights to bfloat16; sums over many entries (norms, softmax, and in reverse mode the
// gradients of biases) are computed in float32, "wide", and rounded once. Adjoints have the types of their values, so
// this holds for derivatives of every order. With images in float32 the conversions below append nothing.

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

// Shift returns x + v in the type of x; v is wide and may be broadcast.
func Shift(x, v *Node) *Node { return narrow(graph.Add(Wide(x), v), x) }

// Scale returns x · v in the type of x; v is wide and may be broadcast.
func Scale(x, v *Node) *Node { return narrow(graph.Mul(Wide(x), v), x) }
