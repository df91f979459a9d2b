package nn

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Node is a value in a computation graph.
type Node = graph.Node

// Scope is what a network needs to append itself to a graph: the nodes of its
// parameters by name and, in training, a random state for dropout.
type Scope struct {
	// RNG is the random state (uint64[3], graph.RNGStateFromSeed's form) while
	// training, and nil otherwise. Every random layer advances it, so after
	// the network has been applied it holds the state to go on with.
	RNG *Node

	nodes map[string]*Node
}

// NewScope returns the scope in which params[i] is nodes[i], a node of shape
// params[i].DeviceShape(). It panics if the lengths or shapes differ.
func NewScope(params []Param, nodes []*Node) *Scope {
	if len(params) != len(nodes) {
		panic(fmt.Sprintf("nn: %d parameters, %d nodes", len(params), len(nodes)))
	}
	s := &Scope{nodes: make(map[string]*Node, len(params))}
	for i, p := range params {
		if err := nodes[i].Shape().CheckDims(p.DeviceShape()...); err != nil {
			panic(fmt.Sprintf("nn: parameter %s: %v", p.Name, err))
		}
		s.nodes[p.Name] = nodes[i]
	}
	return s
}

// Training reports whether random layers are active.
func (s *Scope) Training() bool { return s.RNG != nil }

// Param returns the node of the named parameter. It panics if there is none.
func (s *Scope) Param(name string) *Node {
	n, ok := s.nodes[name]
	if !ok {
		panic("nn: no parameter " + name)
	}
	return n
}
