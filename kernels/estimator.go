package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// estimator appends the loss and the terms of its gradient to a graph:
//
//	r = flow(x_t) + ε     w = 2 Σ_j ω_j P_j r     u = Σ_j out_j P_j w
//	b = (∂F/∂y)ᵀ u        a = Σ_j P_j( skip_j w + in_j b ) = (∂flow/∂x)ᵀ w
//
// u is a constant to every differentiation. One reverse pass of ⟨u, F⟩ gives b, the gradient of the summed loss with
// respect to the network's parameters, and the derivatives by the conditioning.
type estimator struct {
	*wrapped
	mode    Mode
	x0, eps *Node   // [B, H, W, C]
	omega   *Node   // [B, J]
	probes  []*Node // [B, H, W, C]; for Full
	rng     *Node   // random state while training, else nil
	train   []*Node // parameters to differentiate by

	y, f, u *Node
	wj      []*Node // P_j w
	v       *Node   // flow(x_t)
}

// build returns the terms of the mode, each [B, J] in the order of [Terms.fields], and the gradients of the summed loss
// with respect to train.
func (e *estimator) build() (terms, gradients []*Node) {
	x := e.noisy(e.x0, e.eps)
	e.y = e.input(x)
	e.f = e.apply(e.y, e.rng)
	e.v = e.flowOf(x, e.f)
	rj := e.sub.Split(e.residual(e.x0, e.eps, e.f))

	var residual subspace.Scalars
	for j, om := range subspace.Columns(e.omega) {
		residual = append(residual, subspace.Dot(rj[j], rj[j]))
		e.wj = append(e.wj, graph.StopGradient(graph.Mul(graph.MulScalar(om, 2), rj[j])))
	}
	e.u = sumOf(e.wj, e.out)

	targets := append([]*Node(nil), e.train...)
	if e.mode != LossOnly {
		targets = append(targets, e.y)
	}
	if e.mode == Backprop {
		targets = append(targets, e.conditioned()...)
	}
	terms = []*Node{residual.Table()}
	if len(targets) == 0 {
		return terms, nil
	}
	grads := graph.Gradient(graph.ReduceAllSum(graph.Mul(e.u, e.f)), targets...)
	gradients, grads = grads[:len(e.train)], grads[len(e.train):]
	switch e.mode {
	case Backprop:
		terms = append(terms, e.backprop(grads[0], grads[1:]))
	case Explicit, Full:
		terms = append(terms, e.transported(grads[0])...)
	}
	return terms, gradients
}

// sumOf returns Σ_j c_j x_j for parts x_j = P_j x; nil means ones.
func sumOf(parts []*Node, c subspace.Scalars) *Node {
	var out *Node
	for j, x := range parts {
		if c != nil {
			x = graph.Mul(c[j], x)
		}
		if out == nil {
			out = x
		} else {
			out = graph.Add(out, x)
		}
	}
	return out
}

// transported returns the explicit term through x_t, and in mode Full the three implicit terms:
//
//	½ g_j^{-1/2} ⟨P_j a, ε⟩,  ½ ⟨P_j h, z⟩,  g_j^{-1/2} ⟨P_j a, v⟩,  ½ g_j^{-1} ⟨P_j w, v⟩
func (e *estimator) transported(b *Node) []*Node {
	aj := e.sub.Split(b)
	for j := range aj {
		if e.in != nil {
			aj[j] = graph.Mul(e.in[j], aj[j])
		}
		if e.skip != nil {
			aj[j] = graph.Add(aj[j], graph.Mul(e.skip[j], e.wj[j]))
		}
	}
	explicit, transport := subspace.Dots(aj, e.eps), subspace.Dots(aj, e.v)
	drift := subspace.Dots(e.wj, e.v)
	for j := range explicit {
		explicit[j] = graph.Div(graph.MulScalar(explicit[j], 0.5), e.root[j])
		transport[j] = graph.Div(transport[j], e.root[j])
		drift[j] = graph.Div(graph.MulScalar(drift[j], 0.5), e.gs[j])
	}
	if e.mode == Explicit {
		return []*Node{explicit.Table()}
	}
	return []*Node{explicit.Table(), e.trace(b).Table(), transport.Table(), drift.Table()}
}

// trace returns ½⟨P_j h, z⟩ averaged over the probes z, with h = ∇_x⟨a, z⟩. Since w is a constant, h = Σ_j in_j P_j
// ∇_y⟨b, q⟩ with q = Σ_j in_j P_j z.
func (e *estimator) trace(b *Node) subspace.Scalars {
	var sum subspace.Scalars
	for _, z := range e.probes {
		q := z
		if e.in != nil {
			q = e.sub.Mix(subspace.Scaled(e.in, z))
		}
		h := graph.Gradient(graph.ReduceAllSum(graph.Mul(b, q)), e.y)[0]
		t := subspace.Dots(e.sub.Split(h), z).Times(e.in)
		if sum == nil {
			sum = t
			continue
		}
		for j := range sum {
			sum[j] = graph.Add(sum[j], t[j])
		}
	}
	return sum.Each(func(v *Node) *Node { return graph.MulScalar(v, 0.5/float64(len(e.probes))) })
}

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

// backprop returns the derivative of Σ_j ω_j |P_j r|² by g_j at constant ω. For a raw network, with r = Σ_j P_j(keep_j
// ε + skip_j x_0 + out_j F), its scaled state y = Σ_j P_j(in_j x_0 + in_j √g_j ε), and e and q_i the derivatives of ⟨u,
// F⟩ by ln(σ_geo)/4 and by ρ_i (q_J = 0),
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
