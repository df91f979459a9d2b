package engine

import (
	"math"
	"math/bits"

	"github.com/anisoflight/anisoflight/flight/api"
)

// price returns the bytes of rows rows under s, or TOO_LARGE where they exceed the limit.
func (e *Engine) price(s api.Schema, rows int64) (int64, error) {
	size := s.RowBytes()
	hi, lo := bits.Mul64(uint64(rows), uint64(size))
	if hi != 0 || lo > uint64(e.cfg.MaxBytes) {
		return 0, api.Errorf(api.TooLarge, "The reply would have %d rows of %d bytes", rows, size).
			WithHint("At most %d bytes a request; ask for fewer rows at a time.", e.cfg.MaxBytes)
	}
	return int64(lo), nil
}

// times multiplies numbers of rows and stops at the largest int64, which no price allows.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// rowsPerBatch returns how many rows make about so many bytes.
func rowsPerBatch(s api.Schema, bytes int64) int {
	return int(max(1, bytes/max(1, s.RowBytes())))
}
