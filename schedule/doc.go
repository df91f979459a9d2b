// Package schedule holds noise schedules: how fast the noise variance of each
// subspace grows with time.
//
// A Path is one increasing function g(t), a variance, on [0, T]: ln g is linear
// between knots. A Theta is the unconstrained form of a path that an optimiser
// moves. A Schedule is a table of paths, one row per class label (or one shared
// row) and one column per subspace of the image space. A Density is a measured
// energy density F(g), from which Geodesic builds the schedule of least energy
// without any descent.
//
// Everything is float64 and lives on the host. The device never sees a schedule:
// it receives g and ġ per sample and returns two numbers per sample and subspace,
// A = ∂L/∂g and B = ∂L/∂ġ, which Path.Chain and Theta.Pull carry back to the knots
// and to θ.
//
// Invariants. Paths, densities and schedules are immutable: methods return copies.
// Along every path g is positive and strictly increasing. All paths of a schedule
// end at the same time T.
//
// The package imports the standard library, gonum's quadrature and subpackage basis,
// which holds the subspaces themselves, only; it knows nothing of tensors, models or requests.
//
// Begin with path.go, then theta.go, then schedule.go.
package schedule
