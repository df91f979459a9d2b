// Package modelbench measures what a network costs on a device: the forward pass, its
// derivatives, a training step and sampling, each as a program of its own.
//
// A [Bench] holds one network and one batch of inputs, made of a seed, and runs any of the
// programs by name. `anisoflight bench model` prints a table of them; with --drive it is one
// half of a comparison: another process says by lines what to run ([Drive]), in turn with
// its own, and has the inputs and outputs saved to compare them with its own.
//
// It imports kernels, schedule and train/checkpoint, and the server for sampling through
// Flight. Begin reading with Open; graphs.go has the network's own programs, step.go the
// training steps, sample.go and served.go the samplers.
package modelbench
