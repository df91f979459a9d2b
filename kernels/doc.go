// Package kernels is everything that is compiled for the device: the flow of a diffusion process, the loss of a noise
// schedule, the terms of its gradient, and one training step.
//
// # The cut
//
// A compiled program never sees a schedule's parameters, its classes or its knots. Per sample and subspace it is given
// a noise variance g and a weight ω, and it gives back a few numbers; package schedule turns θ into g and ġ before and
// the numbers into dθ after. Likewise a solver is host arithmetic that yields coefficients, and the device evaluates
// and combines. So there is one program per function and shape, whatever the schedule, family or solver.
//
// # Notation
//
//	B, H, W, C   batch, height, width, channels; images are NHWC, row-major
//	J            subspaces; P_1 … P_J orthogonal projectors that sum to I
//	g_j          noise variance (σ²) of subspace j, flat row-major [B*J]
//	x_t          x_0 + Σ_j √g_j P_j ε
//	flow         M^{1/2} ∇ log p(x) = M^{-1/2}(D(x) − x), M = Σ_j g_j P_j
//	σ_d, s       the standard deviation of the data and its square
//	r            flow + ε, the residual
//
// The idea is that of "Variational Trajectory Optimization of Anisotropic Diffusion Schedules"; docs/method.md says
// what is computed, and every function that computes an equation states it.
//
// # Where to begin
//
// [Architecture] is what a config.json describes, [Network] what can be evaluated once it has values and a basis,
// [Model] a network on a device with a basis, [Trajectory] sampling, [Model.Estimate] the estimator, [Trainer] the
// training step. precondition.go wraps the raw network, package subspace applies the projectors, estimator.go holds the
// estimator: once, for all of them. cost.go counts what programs take. frame.go is what they have in common;
// precision.go says in what arithmetic they compute.
//
// # Rules
//
// Imports only kernels/..., schedule/basis and the standard library. Graphs are built inside device.Program, where
// panics become errors. Models and weights are immutable and safe for concurrent use; a Trajectory and a Trainer each
// belong to one goroutine. Wrong arguments are *[InputError]; what the device answers is passed on.
package kernels
