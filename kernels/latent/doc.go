// Package latent is the host's random number generator: counter-based, so that a
// number is a function of (seed, stream, position) alone and never of batch size,
// order of evaluation or device.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, Parallel random
// numbers: as easy as 1, 2, 3, SC 2011): ten rounds of two 32×32-bit products turn
// a 128-bit counter and a 64-bit key into 128 random bits. The key is the seed, the
// counter is (position, stream, purpose): different purposes and streams of one seed
// never share a block.
//
// Sample i of a request uses the seed s + i modulo 2⁶⁴: its latent is
// Normal(s+i, StreamLatent, …), its class Label(s+i, classes).
//
// The package imports the standard library only. Begin with philox.go.
package latent
