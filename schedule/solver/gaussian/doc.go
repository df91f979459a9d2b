// Package gaussian chooses noise levels for a solver without a network, on the data's
// own Gaussian.
//
// Replace the data by a normal law whose principal directions are those of the DCT.
// The probability flow then is linear and the same in form along every direction: at
// variance g of the noise, a direction of mean m and variance λ has
//
//	flow = −√g (x − m)/(λ + g),   D = (λ x + g m)/(λ + g),
//
// so that a solver.Plan, whose combinations are linear too, maps the unit normal ξ
// exactly to a ξ + b m with two numbers a and b per direction. The sampler's distance
// to the truth is known in closed form, without samples,
//
//	W2² = Σ (|a| − √λ)² + (b − 1)² m²   over the directions,
//
// and the nodes of each subspace can be chosen to make it small: least squares in a
// few dozen numbers, a second or so on one core. The nodes depend on the data, the
// basis, the solver and the number of evaluations, on no model.
//
// The package imports solver, schedule, schedule/basis, gonum's matrices and the
// standard library: no device, no tensors. Everything is deterministic.
//
// Begin with spectrum.go, which says what is kept of the data; then run.go and
// bench.go, the exact bench, and optimize.go.
package gaussian
