package pixels

import "math"

// FromUint8 returns the float of a byte, v/127.5 − 1, computed in float64 and rounded
// once.
func FromUint8(v uint8) float32 { return floats[v] }

var floats = func() (t [256]float32) {
	for i := range t {
		t[i] = float32(float64(i)/127.5 - 1)
	}
	return t
}()

// ToUint8 returns the byte nearest to a float, 127.5·x + 127.5 clamped to 0 … 255, ties
// to even. NaN becomes 0.
func ToUint8(x float32) uint8 {
	v := math.RoundToEven(127.5*float64(x) + 127.5)
	if !(v > 0) {
		return 0
	}
	return uint8(min(v, 255))
}
