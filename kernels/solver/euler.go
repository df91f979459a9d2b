package solver

// euler is the first-order method, one evaluation a step:
//
//	x ← x − Σ_j ΔU_j P_j flow,  ΔU_j = U_next,j − U_j.
func euler(_ Settings, c *clock) []link {
	out := make([]link, c.steps())
	for i := range out {
		out[i] = c.nodeLink(i, 1, []float64{c.u[i] - c.u[i+1]})
	}
	return out
}
