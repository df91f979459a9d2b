package nn

import "github.com/gomlx/gomlx/pkg/core/graph"

// Linear is y = weight · x + bias on vectors; without the bias where NoBias is set.
type Linear struct {
	Name    string
	In, Out int
	NoBias  bool
	Init    Init
}

// Params lists weight [Out, In] and bias [Out].
func (l Linear) Params() []Param {
	p := []Param{{Name: l.Name + ".weight", Shape: []int{l.Out, l.In}, Init: l.Init.weight(l.In, l.Out)}}
	if !l.NoBias {
		p = append(p, Param{Name: l.Name + ".bias", Shape: []int{l.Out}, Init: l.Init.bias(l.In, l.Out)})
	}
	return p
}

// Apply maps x [B, In] to [B, Out].
func (l Linear) Apply(s *Scope, x *Node) *Node {
	y := graph.DotGeneral(x, []int{1}, nil, s.Like(x, l.Name+".weight"), []int{1}, nil)
	if l.NoBias {
		return y
	}
	return Shift(y, graph.Reshape(s.Param(l.Name+".bias"), 1, l.Out))
}
