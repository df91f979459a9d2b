package kernels

// PartNames names the terms of the loss's derivative by the schedule, in the order
// in which reports list them. No mode has all of them.
var PartNames = [...]string{"weight", "explicit", "implicit1", "implicit2", "implicit3", "backprop"}

// Part is what one term adds to A and B of [Terms.Assemble]: the derivative by the
// schedule is the sum of its parts.
type Part struct {
	Index int       // in PartNames
	A     []float64 // [B*J]
	B     []float64 // [B*J]; nil for zeros: only the weight depends on ġ
}

// Parts returns the terms that the mode has, the weight's first: both its
// derivatives,
//
//	A_j = −ω_j (1/g_j + 1/(c+g_j)) |P_j r|²,   B_j = 2 ω_j |P_j r|² / ġ_j,
//
// then those of the device, with A alone. omega [B*J] are the weights that the terms
// were computed with: those of the trajectory loss, times any factor of the sample's.
func (t *Terms) Parts(omega, g, gdot []float64, c float64) []Part {
	weight := Part{A: make([]float64, len(g)), B: make([]float64, len(g))}
	for i, n2 := range t.Residual {
		e := omega[i] * n2
		weight.A[i] = -e * (1/g[i] + 1/(c+g[i]))
		weight.B[i] = 2 * e / gdot[i]
	}
	parts := []Part{weight}
	for i, a := range [][]float64{t.ExplicitX, t.Implicit1, t.Implicit2, t.Implicit3, t.Backprop} {
		if a != nil {
			parts = append(parts, Part{Index: i + 1, A: a})
		}
	}
	return parts
}
