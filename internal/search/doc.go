// Package search chooses how a network is sampled: the sampler that does best at few evaluations (Few), coefficients
// that are fitted to a network's own trajectories (Fit), noise levels that suit a solver on the data's Gaussian
// (Levels), and what follows from a data set before anything is trained (Advise).
//
// A search touches a network through sampler.Ensemble alone: it sends plans and gets sums back, wherever the network
// is. It knows no requests and nothing that is stored.
//
// Begin with few.go.
package search
