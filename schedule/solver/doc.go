// Package solver turns a schedule, a solver and a time grid into numbers: where the
// network is evaluated and how its answers are combined.
//
// The probability flow is dx = −Σ_j P_j flow · d√g_j, so subspace j runs on its own
// clock u_j = √g_j. Every linear multistep or Runge–Kutta method is then a sequence
// of stages
//
//	x ← x + Σ_j Noise_j P_j ξ     with churn alone
//	E_0 = flow(x, G)              evaluate, E_0 pushed in front of the history
//	x ← Σ_j P_j (α_j x + Σ_i β_{ji} E_i)
//
// with scalar coefficients per subspace, computed here in float64. A device needs
// two programs, evaluate and combine, whatever the solver. Samples on different
// rows of a per-class schedule have plans of equal shape and different numbers.
//
// One file per solver, each a pure function from the clock of one subspace to its
// coefficients; methods.go is the register of their names. grid.go places the
// times, settings.go resolves a request, plan.go assembles.
//
// The package imports schedule, gonum's quadrature and linear algebra, and the
// standard library: no device, no tensors. Begin with plan.go.
package solver
