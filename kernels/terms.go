package kernels

import (
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Terms are the parts of the loss and of its derivative with respect to g_j,
// per sample and subspace: each slice is flat row-major [B*J], and nil where
// the mode has no such term. With r = flow + ε, v = flow(x_t), w = 2Σ_j ω_j P_j r,
// a = (∂flow/∂x)ᵀw, h = ∇_x⟨a, z⟩ for a probe z:
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

// Assemble sums the terms, in float64, into
//
//	loss  [B]    Σ_j ω_j |P_j r|²,  ω_j = ġ_j² / (g_j (c + g_j))
//	A     [B*J]  d loss / d g_j
//	B     [B*J]  d loss / d ġ_j = 2 ω_j |P_j r|² / ġ_j
//
// so that d_θ loss = Σ_j A_j d_θ g_j + B_j d_θ ġ_j. The weights ω that the terms
// were computed with must be those of g, gdot and c. It panics if the lengths of
// g, gdot and the terms differ.
func (t *Terms) Assemble(g, gdot []float64, c float64) (loss, A, B []float64) {
	t.lengths(g, gdot)
	loss = make([]float64, len(g)/t.J)
	A = t.ExplicitWeight(g, gdot, c)
	B = make([]float64, len(g))
	for i, n2 := range t.Residual {
		e := omega(g[i], gdot[i], c) * n2
		loss[i/t.J] += e
		B[i] = 2 * e / gdot[i]
		for _, part := range [][]float64{t.ExplicitX, t.Implicit1, t.Implicit2, t.Implicit3, t.Backprop} {
			if part != nil {
				A[i] += part[i]
			}
		}
	}
	return loss, A, B
}

// ExplicitWeight returns the part of A that comes from the weight ω_j itself,
//
//	−ω_j (1/g_j + 1/(c+g_j)) |P_j r|²,
//
// the only part that the device does not compute.
func (t *Terms) ExplicitWeight(g, gdot []float64, c float64) []float64 {
	t.lengths(g, gdot)
	out := make([]float64, len(g))
	for i, n2 := range t.Residual {
		out[i] = -omega(g[i], gdot[i], c) * (1/g[i] + 1/(c+g[i])) * n2
	}
	return out
}

// omega is the weight ġ²/(g(c+g)) of the trajectory loss.
func omega(g, gdot, c float64) float64 { return gdot * gdot / (g * (c + g)) }

func (t *Terms) lengths(g, gdot []float64) {
	if len(g) != len(t.Residual) || len(gdot) != len(g) {
		panic("kernels: g, gdot and the terms have different lengths")
	}
}

// readTerms reads the device's table [terms, batch, J] and keeps n samples.
func readTerms(table *device.Buffer, mode Mode, n, batch, j int) (*Terms, error) {
	all := make([]float64, table.Size())
	if err := download(table, all); err != nil {
		return nil, err
	}
	t := &Terms{Mode: mode, J: j}
	for i, kind := range termsOf(mode) {
		part := all[i*batch*j : i*batch*j+n*j : i*batch*j+n*j]
		switch kind {
		case termResidual:
			t.Residual = part
		case termExplicitX:
			t.ExplicitX = part
		case termImplicit1:
			t.Implicit1 = part
		case termImplicit2:
			t.Implicit2 = part
		case termImplicit3:
			t.Implicit3 = part
		case termBackprop:
			t.Backprop = part
		}
	}
	return t, nil
}
