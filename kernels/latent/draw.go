package latent

import (
	"math"
	"math/bits"
)

// The streams that samplers draw from. Any other number may serve as a stream too.
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

// Normal fills dst with independent standard normal numbers. Entry i depends on
// (seed, stream, i) alone, so a longer dst begins with the same numbers. Each block
// of the generator gives two by Box and Muller's transform in float64,
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

// Label returns a class drawn uniformly from [0, classes). It panics unless
// classes is positive.
func Label(seed uint64, classes int) int32 {
	if classes <= 0 || classes > math.MaxInt32 {
		panic("latent: Label needs a positive number of classes")
	}
	var counter uint64
	return int32(below(uint64(classes), func() uint64 {
		a, _ := pair(seed, 0, counter, forLabel)
		counter++
		return a
	}))
}

// below returns a number uniform in [0, n) from random bits, without bias: the high
// word of bits·n, refused where the low word falls into the 2⁶⁴ mod n left over.
func below(n uint64, next func() uint64) uint64 {
	for {
		hi, lo := bits.Mul64(next(), n)
		if lo >= -n%n {
			return hi
		}
	}
}

// Perm returns a permutation of 0 … n−1, all equally likely, as a function of its
// arguments: the order of a data set in one epoch.
func Perm(seed uint64, stream uint32, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var counter uint64
	next := func() uint64 {
		a, _ := pair(seed, stream, counter, forPerm)
		counter++
		return a
	}
	for i := n - 1; i > 0; i-- {
		j := int(below(uint64(i+1), next))
		order[i], order[j] = order[j], order[i]
	}
	return order
}
