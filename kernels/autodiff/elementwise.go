package autodiff

import "github.com/gomlx/gomlx/pkg/core/graph"

// rsqrt: y = x^{−1/2}, x̄ = −½ y³ v. Written in y, so that it stays finite
// wherever y is.
func rsqrt(node, v *graph.Node) []*graph.Node {
	cube := graph.Mul(node, graph.Square(node))
	return []*graph.Node{graph.Mul(v, graph.MulScalar(cube, -0.5))}
}

// expm1: y = eˣ − 1, x̄ = eˣ v.
func expm1(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Mul(v, graph.Exp(node.Inputs()[0]))}
}

// identity: x̄ = v.
func identity(_, v *graph.Node) []*graph.Node { return []*graph.Node{v} }

// flat is the rule of piecewise constant functions (sign, floor, ...): zero
// almost everywhere. First-order rules of max, abs and their like are made of
// these, so second derivatives of those need it.
func flat(node, _ *graph.Node) []*graph.Node { return make([]*graph.Node, len(node.Inputs())) }
