package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// conditioned lists the nodes through which g conditions the network itself.
func (e *estimator) conditioned() []*Node {
	switch {
	case e.flow != nil:
		return []*Node{e.inner}
	case e.seesRatios():
		return []*Node{e.noise, e.ratios}
	}
	return []*Node{e.noise}
}

// seesRatios reports whether the ratio inputs depend on g.
func (e *estimator) seesRatios() bool { return e.ratios != nil && e.sub.count() > 1 }

// backprop returns the derivative of Σ_j ω_j |P_j r|² by g_j at constant ω. For
// a raw network, with s = σ_d², e and q_i the derivatives of ⟨u, F⟩ by the noise
// label and by ρ_i (q_J = 0),
//
//	⟨P_j w, (g_j−s)/(2√g_j (g_j+s)²) x_0 − s/(g_j+s)² ε − ½σ_d (g_j+s)^{-3/2} F⟩
//	+ ⟨P_j b, s/(2√g_j (g_j+s)^{3/2}) ε − ½(g_j+s)^{-3/2} x_0⟩
//	+ [ e/J + q_j − (1/J) Σ_i q_i ] / (8 g_j)
//
// For a FlowNetwork it is ½ g_j^{-1/2}⟨P_j a, ε⟩ + ⟨w, ∂flow/∂g_j⟩.
func (e *estimator) backprop(b *Node, by []*Node) *Node {
	bj := e.sub.split(b)
	out := make(scalars, len(bj))
	if e.flow != nil {
		inner := columns(by[0])
		for j := range out {
			out[j] = graph.Add(graph.Div(graph.MulScalar(dot(bj[j], e.eps), 0.5), e.root[j]), inner[j])
		}
		return out.table()
	}
	s := e.sigma * e.sigma
	label := e.byLabel(by)
	for j := range out {
		g, root, total := e.gs[j], e.root[j], e.total[j]
		cube := graph.Div(e.inv[j], total) // (g+s)^{-3/2}
		square := graph.Square(total)
		onX0 := graph.Div(graph.MulScalar(graph.AddScalar(g, -s), 0.5), graph.Mul(root, square))
		onEps := graph.MulScalar(graph.Reciprocal(square), -s)
		onF := graph.MulScalar(cube, -0.5*e.sigma)
		output := graph.Add(graph.Add(
			graph.Mul(onX0, dot(e.wj[j], e.x0)),
			graph.Mul(onEps, dot(e.wj[j], e.eps))),
			graph.Mul(onF, dot(e.wj[j], e.f)))
		input := graph.Sub(
			graph.Mul(graph.Div(graph.MulScalar(cube, 0.5*s), root), dot(bj[j], e.eps)),
			graph.Mul(graph.MulScalar(cube, 0.5), dot(bj[j], e.x0)))
		out[j] = graph.Add(graph.Add(output, input), graph.Div(graph.MulScalar(label[j], 0.125), g))
	}
	return out.table()
}

// byLabel returns e/J + q_j − (1/J) Σ_{i<J} q_i.
func (e *estimator) byLabel(by []*Node) scalars {
	n := e.sub.count()
	batch := e.g.Shape().Dimensions[0]
	common := graph.MulScalar(graph.Reshape(by[0], batch, 1, 1, 1), 1/float64(n))
	out := make(scalars, n)
	for j := range out {
		out[j] = common
	}
	if !e.seesRatios() {
		return out
	}
	q := columns(by[1])
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
