// Package subspace applies the projectors of a basis in a graph, with one coefficient per sample and subspace.
//
// Begin with Projector, which belongs to a model, and Subspaces, which belongs to a program.
package subspace

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Subspaces applies the projectors P_1 … P_J in a graph by means of the projectors
//
//	Q_i = P_1 + … + P_i,  i < J
//
// so that a sum over subspaces takes J−1 applications of a Q.
type Subspaces struct {
	nest []func(x *graph.Node) *graph.Node // Q_1 … Q_{J−1}, on [B, H, W, C]
}

// Count returns J.
func (s Subspaces) Count() int { return len(s.nest) + 1 }

// Sum returns Σ_j P_j y_j = y_J + Σ_{i<J} Q_i (y_i − y_{i+1}).
func (s Subspaces) Sum(y []*graph.Node) *graph.Node {
	out := y[len(s.nest)]
	for i, q := range s.nest {
		out = graph.Add(out, q(graph.Sub(y[i], y[i+1])))
	}
	return out
}

// Split returns P_1 x, …, P_J x.
func (s Subspaces) Split(x *graph.Node) []*graph.Node {
	parts := make([]*graph.Node, 0, s.Count())
	var below *graph.Node
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
		return []*graph.Node{x}
	}
	return append(parts, graph.Sub(x, below))
}

// A Term is Σ_j c_j P_j x with one coefficient per sample and subspace.
type Term struct {
	c Scalars     // nil means ones
	x *graph.Node // [B, H, W, C]
}

// Scaled returns the term of c, nil for ones, and images x [B, H, W, C].
func Scaled(c Scalars, x *graph.Node) Term { return Term{c, x} }

// Mix returns Σ_j P_j Σ_k c_kj x_k.
func (s Subspaces) Mix(terms ...Term) *graph.Node {
	y := make([]*graph.Node, s.Count())
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
	return s.Sum(y)
}

// Scalars holds one [B, 1, 1, 1] node per subspace.
type Scalars []*graph.Node

// Columns cuts a [B, J] node into Scalars.
func Columns(c *graph.Node) Scalars {
	d := c.Shape().Dimensions
	out := make(Scalars, d[1])
	for j := range out {
		out[j] = graph.Reshape(graph.SliceAxis(c, 1, graph.AxisRange(j, j+1)), d[0], 1, 1, 1)
	}
	return out
}

// Each applies f to every subspace's scalar.
func (c Scalars) Each(f func(*graph.Node) *graph.Node) Scalars {
	out := make(Scalars, len(c))
	for j, v := range c {
		out[j] = f(v)
	}
	return out
}

// Times returns the products with d; nil stands for ones.
func (c Scalars) Times(d Scalars) Scalars {
	switch {
	case c == nil:
		return d
	case d == nil:
		return c
	}
	out := make(Scalars, len(c))
	for j := range c {
		out[j] = graph.Mul(c[j], d[j])
	}
	return out
}

// Dot returns ⟨x, y⟩ per sample, [B, 1, 1, 1].
func Dot(x, y *graph.Node) *graph.Node {
	s := graph.ReduceSum(graph.Mul(x, y), 1, 2, 3)
	return graph.Reshape(s, x.Shape().Dimensions[0], 1, 1, 1)
}

// Dots returns ⟨x_j, y⟩ for every part.
func Dots(parts []*graph.Node, y *graph.Node) Scalars {
	out := make(Scalars, len(parts))
	for j, x := range parts {
		out[j] = Dot(x, y)
	}
	return out
}

// Table joins scalars to one [B, J] node, the inverse of Columns.
func (c Scalars) Table() *graph.Node {
	cols := make([]*graph.Node, len(c))
	for j, v := range c {
		cols[j] = graph.Reshape(v, v.Shape().Dimensions[0], 1)
	}
	if len(cols) == 1 {
		return cols[0]
	}
	return graph.Concatenate(cols, 1)
}
