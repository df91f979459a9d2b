package api

import (
	"math"
	"math/bits"
)

// Times multiplies numbers of rows and stops at the largest int64, which no price allows.
func Times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
