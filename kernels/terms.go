package kernels

import (
	"slices"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
)

// Terms are the terms of the loss and of its derivative by g_j, per sample and subspace. Each slice is flat row-major
// [B*J], or nil if the mode does not compute the term. With r = flow + ε, v = flow(x_t), w = 2Σ_j ω_j P_j r, a =
// (∂flow/∂x)ᵀw and h = ∇_x⟨a, z⟩ for a probe z:
//
//	Residual   |P_j r|²
//	ExplicitX  ½ g_j^{-1/2} ⟨P_j a, ε⟩     through x_t at fixed flow
//	Implicit1  ½ ⟨P_j h, z⟩                 trace, by Hutchinson's estimator
//	Implicit2  g_j^{-1/2} ⟨P_j a, v⟩        transport
//	Implicit3  ½ g_j^{-1} ⟨P_j w, v⟩
//	Backprop   ∂/∂g_j Σ_i ω_i |P_i r|² at constant ω, through x_t and everything
//	           in which g conditions the network; in place of the four above
type Terms struct {
	Mode Mode // never Auto
	J    int

	Residual, ExplicitX, Implicit1, Implicit2, Implicit3, Backprop []float64
}

// Assemble sums the terms of the loss of order 1, in float64, into
//
//	loss  [B]    Σ_j ω_j |P_j r|²,  ω_j = ġ_j² / (g_j (c + g_j))
//	A     [B*J]  d loss / d g_j
//	B     [B*J]  d loss / d ġ_j = 2 ω_j |P_j r|² / ġ_j
//
// so that d_θ loss = Σ_j A_j d_θ g_j + B_j d_θ ġ_j. The terms must have been computed with these weights ω.
func (t *Terms) Assemble(g, gdot []float64, c float64) (loss, A, B []float64) {
	w := make([]float64, len(g))
	loss = make([]float64, len(g)/t.J)
	for i, n2 := range t.Residual {
		w[i] = schedule.Omega(g[i], gdot[i], c)
		loss[i/t.J] += w[i] * n2
	}
	parts := t.Parts(w, g, gdot, c, 1)
	A, B = parts[0].A, parts[0].B
	for _, part := range parts[1:] {
		for i, v := range part.A {
			A[i] += v
		}
	}
	return loss, A, B
}

// PartNames names the terms of the loss's derivative by the schedule, in the order of reports. No mode has all of them.
var PartNames = [...]string{"weight", "explicit", "implicit1", "implicit2", "implicit3", "backprop"}

// Part is what one term adds to A and B of [Terms.Assemble].
type Part struct {
	Index int       // in PartNames
	A     []float64 // [B*J]
	B     []float64 // [B*J]; nil for zeros: only the weight depends on ġ
}

// Parts returns the terms of the mode. The first is that of the weight,
//
//	A_j = −ω_j (p/g_j + 1/(c+g_j)) |P_j r|²,   B_j = (p+1) ω_j |P_j r|² / ġ_j,
//
// and the others have A alone. omega [B*J] are the weights that the terms were computed with: those of the loss of
// order p, times any factor per sample,
//
//	ω_j = (T ġ_j/g_j)^{p−1} ġ_j²/(g_j (c + g_j)).
func (t *Terms) Parts(omega, g, gdot []float64, c float64, order int) []Part {
	p := float64(order)
	weight := Part{A: make([]float64, len(g)), B: make([]float64, len(g))}
	for i, n2 := range t.Residual {
		e := omega[i] * n2
		weight.A[i] = -e * (p/g[i] + 1/(c+g[i]))
		weight.B[i] = (p + 1) * e / gdot[i]
	}
	parts := []Part{weight}
	for i, a := range [][]float64{t.ExplicitX, t.Implicit1, t.Implicit2, t.Implicit3, t.Backprop} {
		if a != nil {
			parts = append(parts, Part{Index: i + 1, A: a})
		}
	}
	return parts
}

// newTerms returns zeros for the terms that a mode computes.
func newTerms(mode Mode, n, j int) *Terms {
	t := &Terms{Mode: mode, J: j}
	zeros := func() []float64 { return make([]float64, n*j) }
	t.Residual = zeros()
	switch mode {
	case Full:
		t.ExplicitX, t.Implicit1, t.Implicit2, t.Implicit3 = zeros(), zeros(), zeros(), zeros()
	case Explicit:
		t.ExplicitX = zeros()
	case Backprop:
		t.Backprop = zeros()
	}
	return t
}

// fields lists the terms of the mode in the order in which the device returns them.
func (t *Terms) fields() [][]float64 {
	all := [][]float64{t.Residual, t.ExplicitX, t.Implicit1, t.Implicit2, t.Implicit3, t.Backprop}
	return slices.DeleteFunc(all, func(term []float64) bool { return term == nil })
}

// read sets samples from … to−1 to the first rows of the device's table [terms, batch, J].
func (t *Terms) read(table *device.Buffer, from, to int) error {
	all := make([]float64, table.Size())
	if err := device.Download(table, all); err != nil {
		return err
	}
	fields := t.fields()
	for i, term := range fields {
		copy(term[from*t.J:to*t.J], all[i*len(all)/len(fields):])
	}
	return nil
}
