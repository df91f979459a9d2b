// Package collective computes with buffers of several devices of one process, by the collectives of their backend.
//
// It imports kernels/device and gomlx. Begin reading with [Sum].
package collective
