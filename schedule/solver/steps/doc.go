// Package steps chooses where a solver's steps lie along a schedule, by dynamic
// programming on the error of single steps (the idea of GITS, Chen et al., On the
// trajectory regularity of ODE-based diffusion sampling, arXiv:2405.11326).
//
// A few converged trajectories of a network are kept with the denoised images on them, at
// candidate times. The error of one step of a solver from any candidate to any later one,
// its past evaluations taken on the trajectory, is then arithmetic: a combination of
// stored vectors, whose norm their inner products give. The path is left as it is, in
// every subspace and class; its time alone is changed, the same for all of them.
//
// The package imports solver, schedule, schedule/basis, gonum's matrices and the standard
// library: no device. Begin with Choose.
package steps
