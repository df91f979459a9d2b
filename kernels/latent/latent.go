// Package latent is the host's random number generator: counter-based, so that a number is a function of (seed, stream,
// position) alone and never of batch size, order of evaluation or device.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011):
// ten rounds of two 32×32-bit products map a 128-bit counter and a 64-bit key to 128 random bits. The key is the seed,
// the counter is (position, stream, purpose): different purposes and streams of one seed never share a block.
//
// Sample i of a request uses the seed s + i modulo 2⁶⁴: its latent is Normal(s+i, StreamLatent, …), its class
// Label(s+i, classes).
package latent

import (
	"math"
	"math/bits"
)

// The streams of samplers. Any other number may be used as a stream too.
const (
	StreamLatent uint32 = 0 // the initial noise of a sample
	StreamChurn  uint32 = 1 // and the streams after it: noise added before each stage of stochastic sampling
)

// Uint64 returns 64 random bits, a function of its arguments.
func Uint64(seed uint64, stream uint32, counter uint64) uint64 {
	a, _ := pair(seed, stream, counter, forBits)
	return a
}

// open maps 64 random bits to (0, 1], 53 of them used.
func open(bits uint64) float64 { return float64(bits>>11+1) * 0x1p-53 }

// Uniform returns a number uniform in [0, 1).
func Uniform(seed uint64, stream uint32) float64 {
	a, _ := pair(seed, stream, 0, forUniform)
	return float64(a>>11) * 0x1p-53
}

// Normal fills dst with independent standard normal numbers. Entry i depends on (seed, stream, i) alone. Each block of
// the generator gives two numbers by the Box–Muller transform in float64,
//
//	√(−2 ln u) cos 2πv,  √(−2 ln u) sin 2πv.
func Normal(seed uint64, stream uint32, dst []float32) {
	for i := 0; i < len(dst); i += 2 {
		a, b := pair(seed, stream, uint64(i/2), forNormal)
		r := math.Sqrt(-2 * math.Log(open(a)))
		sin, cos := math.Sincos(2 * math.Pi * open(b))
		dst[i] = float32(r * cos)
		if i+1 < len(dst) {
			dst[i+1] = float32(r * sin)
		}
	}
}

// Label returns a class drawn uniformly from [0, classes). It panics unless classes is positive.
func Label(seed uint64, classes int) int32 {
	if classes <= 0 || classes > math.MaxInt32 {
		panic("latent: Label needs a positive number of classes")
	}
	return int32(below(uint64(classes), words(seed, 0, forLabel)))
}

// words returns the first words of a stream's blocks, one after the other.
func words(seed uint64, stream uint32, why purpose) (next func() uint64) {
	var counter uint64
	return func() uint64 {
		a, _ := pair(seed, stream, counter, why)
		counter++
		return a
	}
}

// below returns a number uniform in [0, n) from random bits, without bias: the high word of bits·n, rejected if the low
// word is below 2⁶⁴ mod n.
func below(n uint64, next func() uint64) uint64 {
	for {
		hi, lo := bits.Mul64(next(), n)
		if lo >= -n%n {
			return hi
		}
	}
}

// Perm returns a uniform random permutation of 0 … n−1, such as the order of a data set in one epoch.
func Perm(seed uint64, stream uint32, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	next := words(seed, stream, forPerm)
	for i := n - 1; i > 0; i-- {
		j := int(below(uint64(i+1), next))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// The multipliers of the two products and the Weyl increments of the key (Salmon et al., table 2: Philox-4×32).
const (
	mult0, mult1 = 0xD2511F53, 0xCD9E8D57
	weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
	rounds       = 10
)

// philox returns the block of 128 random bits of a counter under a key.
func philox(ctr [4]uint32, key [2]uint32) [4]uint32 {
	for r := range rounds {
		if r > 0 {
			key[0] += weyl0
			key[1] += weyl1
		}
		hi0, lo0 := bits.Mul32(mult0, ctr[0])
		hi1, lo1 := bits.Mul32(mult1, ctr[2])
		ctr = [4]uint32{hi1 ^ ctr[1] ^ key[0], lo1, hi0 ^ ctr[3] ^ key[1], lo0}
	}
	return ctr
}

// purpose separates the kinds of numbers drawn under one seed and stream.
type purpose uint32

const (
	forBits purpose = iota
	forNormal
	forUniform
	forLabel
	forPerm
)

// pair returns a block of a stream as two 64-bit words.
func pair(seed uint64, stream uint32, counter uint64, why purpose) (a, b uint64) {
	out := philox(
		[4]uint32{uint32(counter), uint32(counter >> 32), stream, uint32(why)},
		[2]uint32{uint32(seed), uint32(seed >> 32)})
	return uint64(out[1])<<32 | uint64(out[0]), uint64(out[3])<<32 | uint64(out[2])
}
