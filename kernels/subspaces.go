package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// subspaces applies the projectors P_1 … P_J in a graph. They are given by the
// nest of projectors
//
//	Q_i = P_1 + … + P_i,  i < J
//
// since a sum over subspaces then costs J−1 applications of a Q, and the
// complement none.
type subspaces struct {
	nest []func(x *Node) *Node // Q_1 … Q_{J−1}, on [B, H, W, C]
}

func (s subspaces) count() int { return len(s.nest) + 1 }

// sum returns Σ_j P_j y_j = y_J + Σ_{i<J} Q_i (y_i − y_{i+1}).
func (s subspaces) sum(y []*Node) *Node {
	out := y[len(s.nest)]
	for i, q := range s.nest {
		out = graph.Add(out, q(graph.Sub(y[i], y[i+1])))
	}
	return out
}

// split returns P_1 x, …, P_J x.
func (s subspaces) split(x *Node) []*Node {
	parts := make([]*Node, 0, s.count())
	var below *Node
	for _, q := range s.nest {
		low := q(x)
		if below == nil {
			parts = append(parts, low)
		} else {
			parts = append(parts, graph.Sub(low, below))
		}
		below = low
	}
	if below == nil {
		return []*Node{x}
	}
	return append(parts, graph.Sub(x, below))
}

// A term is Σ_j c_j P_j x with one coefficient per sample and subspace.
type term struct {
	c scalars // nil means ones
	x *Node   // [B, H, W, C]
}

// mix returns Σ_j P_j Σ_k c_kj x_k.
func (s subspaces) mix(terms ...term) *Node {
	y := make([]*Node, s.count())
	for j := range y {
		for _, t := range terms {
			v := t.x
			if t.c != nil {
				v = graph.Mul(t.c[j], v)
			}
			if y[j] == nil {
				y[j] = v
			} else {
				y[j] = graph.Add(y[j], v)
			}
		}
	}
	return s.sum(y)
}

// scalars holds one [B, 1, 1, 1] node per subspace.
type scalars []*Node

// columns cuts a [B, J] node into scalars.
func columns(c *Node) scalars {
	d := c.Shape().Dimensions
	out := make(scalars, d[1])
	for j := range out {
		out[j] = graph.Reshape(graph.SliceAxis(c, 1, graph.AxisRange(j, j+1)), d[0], 1, 1, 1)
	}
	return out
}

// each applies f to every subspace's scalar.
func (c scalars) each(f func(*Node) *Node) scalars {
	out := make(scalars, len(c))
	for j, v := range c {
		out[j] = f(v)
	}
	return out
}

// times returns the products with d; nil stands for ones.
func (c scalars) times(d scalars) scalars {
	switch {
	case c == nil:
		return d
	case d == nil:
		return c
	}
	out := make(scalars, len(c))
	for j := range c {
		out[j] = graph.Mul(c[j], d[j])
	}
	return out
}

// dot returns ⟨x, y⟩ per sample, [B, 1, 1, 1].
func dot(x, y *Node) *Node {
	s := graph.ReduceSum(graph.Mul(x, y), 1, 2, 3)
	return graph.Reshape(s, x.Shape().Dimensions[0], 1, 1, 1)
}

// dots returns ⟨x_j, y⟩ for every part.
func dots(parts []*Node, y *Node) scalars {
	out := make(scalars, len(parts))
	for j, x := range parts {
		out[j] = dot(x, y)
	}
	return out
}

// table joins scalars to one [B, J] node, the inverse of columns.
func (c scalars) table() *Node {
	cols := make([]*Node, len(c))
	for j, v := range c {
		cols[j] = graph.Reshape(v, v.Shape().Dimensions[0], 1)
	}
	if len(cols) == 1 {
		return cols[0]
	}
	return graph.Concatenate(cols, 1)
}
