package kernels

import "context"

// EstimateInput is a batch for [Model.Estimate].
type EstimateInput struct {
	Mode Mode // "" means Auto

	X0    []float32 // [B, H, W, C] images
	Eps   []float32 // [B, H, W, C] noise, unit normal
	Probe []float32 // [B, H, W, C] with E zzᵀ = I; unused by Backprop and Explicit

	G      []float64 // [B*J] noise variances
	Omega  []float64 // [B*J] loss weights ω_j
	Labels []int32   // [B], −1 for none; nil for all −1
}

// Estimate computes the terms of the schedule's gradient, per sample and
// subspace.
func (m *Model) Estimate(ctx context.Context, w *Weights, in EstimateInput) (*Terms, error) {
	return &Terms{}, nil
}

// Terms are the parts of the loss and of its derivative with respect to g_j,
// per sample and subspace: each slice is flat row-major [B*J], and nil where
// the mode has no such term. With r = flow + ε, v = flow(x_t), w = 2Σ_j ω_j P_j r,
// a = (∂flow/∂x)ᵀw, h = ∇_x⟨a, z⟩ for a probe z:
//
//	Residual   |P_j r|²
//	ExplicitX  ½ g_j^{-1/2} ⟨P_j a, ε⟩
//	Implicit1  ½ ⟨P_j h, z⟩
//	Implicit2  g_j^{-1/2} ⟨P_j a, v⟩
//	Implicit3  ½ g_j^{-1} ⟨P_j w, v⟩
//	Backprop   the derivative at constant ω, through x_t and the conditioning
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
// were computed with must be those of g, gdot and c.
func (t *Terms) Assemble(g, gdot []float64, c float64) (loss, A, B []float64) { return nil, nil, nil }
