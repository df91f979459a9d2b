// Package local describes a denoiser, coordinate by coordinate, as a Wiener filter: what
// solver.Settings needs for the solver "local".
//
// In the coordinates of basis.Frequencies the denoiser is written as
//
//	D = q x + (1 − q) m,   q = λ/(λ + σ²),
//
// a filter for data of variance λ about a mean m, both of them local: m is what is left
// of D, and λ the data's variance given the noisy image. By Tweedie's formula that is
// σ² ∂D/∂x, on average the squared error of the denoiser,
//
//	E (D − x_0)² = σ² q,   so   q = E (D − x_0)²/σ² = E (flow + ε)²,   λ = σ² q/(1 − q),
//
// which one pass over the data measures. A normal law has λ = Σ and m = μ everywhere.
//
// The package imports schedule/basis and the standard library: no device, no tensors.
// Begin with statistics.go.
package local
