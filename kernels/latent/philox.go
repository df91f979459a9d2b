package latent

import "math/bits"

// The multipliers of the two products and the Weyl increments of the key
// (Salmon et al., table 2: Philox-4×32).
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

// pair returns block number counter of a stream as two 64-bit words.
func pair(seed uint64, stream uint32, counter uint64, why purpose) (a, b uint64) {
	out := philox(
		[4]uint32{uint32(counter), uint32(counter >> 32), stream, uint32(why)},
		[2]uint32{uint32(seed), uint32(seed >> 32)})
	return uint64(out[1])<<32 | uint64(out[0]), uint64(out[3])<<32 | uint64(out[2])
}
