// Package stepcost measures what a training step costs, in time and memory, with each
// mode of the estimator of the schedule's gradient. `anisoflight bench estimator` prints
// it.
//
// It may import kernels and schedule. Begin at [Measure].
package stepcost
