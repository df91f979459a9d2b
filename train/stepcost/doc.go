// Package stepcost measures what a training step costs, in time and memory, with each
// mode of the estimator of the schedule's gradient. `anisoflight bench estimator` prints
// it.
//
// It may import train's floor and below. Begin at [Measure].
package stepcost
