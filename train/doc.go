// Package train turns data into networks and noise schedules.
//
// A Run is one training stage:
//
//	pretrain      the network alone, by EDM's score-matching loss
//	isotropic     one path g(t), by the trajectory loss; with the network or without
//	anisotropic   one path per subspace, from the isotropic one
//
// Its Config has the same names everywhere: in configs/*.yaml, on the command line
// and in CreateRun. A step draws images and noise levels on the host, runs one
// program on the device (package kernels), and moves the schedule's parameters θ
// with Adam in float64. Everything the next step depends on is explicit state
// (State, Resume): a resumed run has the same rows as one that was never stopped.
//
// A run stops by itself if its schedule's gradient is noise or its energy on a fixed
// evaluation set rises, as its configuration asks, and always if its loss blows up
// (stop.go). Either comes as an error with the row of the step, never silently.
//
// Passes over the data that need no run are package passes: the schedule of least energy
// that a run may start from, evaluation, bases of principal components.
//
// A Run belongs to one goroutine. The schedules, rows and models that it returns are
// immutable and stay what they are while training goes on.
//
// The package may import kernels, schedule, train/... and the standard library.
// Begin with config.go, then setup.go, run.go and step.go; learner.go is the part of a
// step that the host computes, for runs and for networks outside the process alike.
package train
