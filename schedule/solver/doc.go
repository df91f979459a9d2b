// Package solver turns a schedule, a solver and a time grid into numbers: where the
// network is evaluated and how its answers are combined.
//
// The probability flow is dx = −Σ_j P_j flow · d√g_j, so subspace j runs on its own
// clock u_j = √g_j. Every linear multistep or Runge–Kutta method is then a sequence
// of stages
//
//	x ← x + Σ_j Noise_j P_j ξ     with churn alone
//	E_0 = flow(x, G)              evaluate, E_0 pushed in front of the history
//	x ← Σ_p P_p (α_p x + Σ_i β_{pi} E_i)
//
// with scalar coefficients by part p of the plan, computed here in float64. The parts
// are the schedule's subspaces, or finer: the solvers local and fitted have
// coefficients for every coordinate of the DCT. Samples on different rows of a
// per-class schedule have plans of equal shape and different numbers.
//
// A solver is a function from the clock of a subspace to its links, and a row of
// register.go, which holds its facts: orders, history, whether it takes churn. Help
// texts, refusals and the test of orders read them there.
//
//	register.go    the solvers and their facts
//	settings.go    what a request may say, and its defaults
//	grid.go        where the steps lie
//	plan.go        New, which makes the stages
//	options.go     afs, warmup and denoise_to_zero, for any solver
//	rungekutta.go, adams.go, dpmpp.go, unipc.go, local.go    the solvers
//
// The package imports schedule, schedule/local, gonum's quadrature and the standard
// library: no device, no tensors. Begin with plan.go.
package solver
