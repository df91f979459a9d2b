package solver

// euler is the first-order method, one evaluation a step:
//
//	x ← x − Σ_j ΔU_j P_j flow,  ΔU_j = U_next,j − U_j.
func euler(_ Settings, c *clock) []link {
	out := make([]link, c.steps())
	for i := range out {
		out[i] = c.eulerStep(i)
	}
	return out
}

// eulerStep returns the only link of step i.
func (c *clock) eulerStep(i int) link {
	from := c.start(i)
	return link{t: from.t, g: from.g, alpha: 1, beta: []float64{from.u - c.u[i+1]}, step: i, noise: from.noise}
}
