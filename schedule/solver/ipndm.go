package solver

// fixedWeights are the Adams–Bashforth weights of uniform steps, by order.
var fixedWeights = [...][]float64{
	1: {1},
	2: {3. / 2, -1. / 2},
	3: {23. / 12, -16. / 12, 5. / 12},
	4: {55. / 24, -59. / 24, 37. / 24, -9. / 24},
}

// ipndm is the improved pseudo-numerical method of order 1–4 (Zhang and Chen,
// arXiv:2204.13902): Adams–Bashforth in U with the weights of uniform steps,
//
//	x ← x − Σ_j ΔU_j P_j Σ_i w_i E_i.
//
// On a grid that is not uniform in U it is of second order only, which does not
// keep it from being good; ipndmVariable has the weights of the actual steps.
func ipndm(s Settings, c *clock) []link {
	out := make([]link, c.steps())
	for i := range out {
		w := fixedWeights[c.order(i, s.Order)]
		beta := make([]float64, len(w))
		for k := range beta {
			beta[k] = (c.u[i] - c.u[i+1]) * w[k]
		}
		out[i] = c.nodeLink(i, 1, beta)
	}
	return out
}

var gauss4 = gaussLegendre(4)

// ipndmVariable is ipndm with the Adams–Bashforth weights of the actual steps, nodes
// in U: β_{ji} = −∫ ℓ_i(u) du over the step.
func ipndmVariable(s Settings, c *clock) []link {
	out := make([]link, c.steps())
	for i := range out {
		p := c.order(i, s.Order)
		nodes := recent(c.u, i, p)
		beta := make([]float64, p)
		for k := range beta {
			beta[k] = -gauss4.integrate(c.u[i], c.u[i+1], func(u float64) float64 { return lagrange(nodes, k, u) })
		}
		out[i] = c.nodeLink(i, 1, beta)
	}
	return out
}
