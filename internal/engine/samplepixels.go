package engine

import (
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
)

// pixels turns images on the device's side, float32 HWC in [−1, 1], into a column of the requested type and layout.
func pixels(images []float32, t api.Type, l layout, h, w, c int) any {
	if t == api.Float32 {
		out := make([]float32, len(images))
		reorder(out, images, hwc, l, h, w, c)
		return out
	}
	out := make([]uint8, len(images))
	for i, x := range images {
		out[i] = quantise(x)
	}
	if l == hwc {
		return out
	}
	turned := make([]uint8, len(out))
	reorder(turned, out, hwc, l, h, w, c)
	return turned
}

// quantise maps [−1, 1] to 0 … 255: clamp(round(127.5·x + 127.5)). NaN becomes 0.
func quantise(x float32) uint8 {
	v := math.RoundToEven(127.5*float64(x) + 127.5)
	if !(v > 0) {
		return 0
	}
	return uint8(min(v, 255))
}
