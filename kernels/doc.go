// Package kernels has everything that is compiled for the device: the flow of a diffusion process, the loss of a noise
// schedule, the terms of its gradient, and one training step.
//
// # Host and device
//
// A compiled program never sees a schedule's parameters, its classes or its knots. Per sample and subspace it takes a
// noise variance g and a weight ω, and returns a few numbers; package schedule computes g and ġ from θ before, and dθ
// from the numbers after. Likewise a solver computes coefficients on the host, and the device evaluates and combines.
// So there is one program per function and shape, for every schedule, family and solver.
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
// The method is that of "Variational Trajectory Optimization of Anisotropic Diffusion Schedules"; see docs/method.md.
// Every function that computes an equation states it.
//
// # Where to begin
//
// [Architecture] is what a config.json describes, [Network] a function of images and noise levels, [Model] a network
// on a device with a basis, [Trajectory] sampling, [Model.Estimate] the estimator, [Trainer] the training step. All of
// them share precondition.go, which wraps the raw network, package subspace, which applies the projectors, and
// frame.go.
//
// Graphs are built inside device.Program, where panics become errors. Models and weights are immutable and safe for
// concurrent use; a Trajectory and a Trainer each belong to one goroutine. Wrong arguments are *[InputError]; errors of
// the device are passed on.
package kernels
