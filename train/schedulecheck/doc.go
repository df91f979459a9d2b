// Package schedulecheck tests the estimator of the schedule's gradient where the truth
// is known: on a Gaussian mixture, whose flow is exact, against finite differences of
// the loss. `anisoflight schedule check` prints what it finds.
//
// It runs the very programs that a training step runs, noise and probes of the device
// included, in float64. Two runs of one seed and step draw the same noise, so the loss
// can be differentiated by moving θ alone, sample by sample.
//
// It may import kernels and schedule. Begin at [Run].
package schedulecheck
