package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// conditioned lists the nodes through which g conditions the network itself.
func (e *estimator) conditioned() []*Node {
	switch {
	case e.flow != nil:
		return []*Node{e.inner}
	case e.seesRatios():
		return []*Node{e.log, e.ratios}
	}
	return []*Node{e.log}
}

// seesRatios reports whether the ratio inputs depend on g.
func (e *estimator) seesRatios() bool { return e.ratios != nil && e.sub.Count() > 1 }

// backprop returns the derivative of Σ_j ω_j |P_j r|² by g_j at constant ω. For
// a raw network, with r = Σ_j P_j(keep_j ε + skip_j x_0 + out_j F), its scaled state
// y = Σ_j P_j(in_j x_0 + in_j √g_j ε), and e and q_i the derivatives of ⟨u, F⟩ by
// ln(σ_geo)/4 and by ρ_i (q_J = 0),
//
//	keep'_j ⟨P_j w, ε⟩ + skip'_j ⟨P_j w, x_0⟩ + out'_j ⟨P_j w, F⟩
//	+ in'_j ⟨P_j b, x_0⟩ + (in_j √g_j)' ⟨P_j b, ε⟩
//	+ [ e/J + q_j − (1/J) Σ_i q_i ] / (8 g_j)
//
// For a FlowNetwork it is ½ g_j^{-1/2}⟨P_j a, ε⟩ + ⟨w, ∂flow/∂g_j⟩.
func (e *estimator) backprop(b *Node, by []*Node) *Node {
	bj := e.sub.Split(b)
	out := make(subspace.Scalars, len(bj))
	if e.flow != nil {
		inner := subspace.Columns(by[0])
		for j := range out {
			out[j] = graph.Add(graph.Div(graph.MulScalar(subspace.Dot(bj[j], e.eps), 0.5), e.root[j]), inner[j])
		}
		return out.Table()
	}
	label := e.byLabel(by)
	for j := range out {
		slope := func(c *Node) *Node { return graph.Gradient(graph.ReduceAllSum(c), e.gs[j])[0] }
		output := graph.Add(graph.Add(
			graph.Mul(slope(e.skip[j]), subspace.Dot(e.wj[j], e.x0)),
			graph.Mul(slope(e.keep[j]), subspace.Dot(e.wj[j], e.eps))),
			graph.Mul(slope(e.out[j]), subspace.Dot(e.wj[j], e.f)))
		input := graph.Add(
			graph.Mul(slope(e.cross[j]), subspace.Dot(bj[j], e.eps)),
			graph.Mul(slope(e.in[j]), subspace.Dot(bj[j], e.x0)))
		out[j] = graph.Add(graph.Add(output, input), graph.Div(graph.MulScalar(label[j], 0.125), e.gs[j]))
	}
	return out.Table()
}

// byLabel returns e/J + q_j − (1/J) Σ_{i<J} q_i.
func (e *estimator) byLabel(by []*Node) subspace.Scalars {
	n := e.sub.Count()
	batch := e.g.Shape().Dimensions[0]
	common := graph.MulScalar(graph.Reshape(by[0], batch, 1, 1, 1), 1/float64(n))
	out := make(subspace.Scalars, n)
	for j := range out {
		out[j] = common
	}
	if !e.seesRatios() {
		return out
	}
	q := subspace.Columns(by[1])
	for _, v := range q {
		common = graph.Sub(common, graph.MulScalar(v, 1/float64(n)))
	}
	for j := range out {
		out[j] = common
		if j < len(q) {
			out[j] = graph.Add(common, q[j])
		}
	}
	return out
}
