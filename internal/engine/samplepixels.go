package engine

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// imageValues turns images on the device's side, float32 HWC in [−1, 1], into a column of the requested type and layout.
func imageValues(images []float32, t api.Type, l pixels.Layout, h, w, c int) any {
	if t == api.Float32 {
		out := make([]float32, len(images))
		pixels.Reorder(out, images, hwc, l, h, w, c)
		return out
	}
	out := make([]uint8, len(images))
	pixels.Convert(out, images, hwc, l, h, w, c, pixels.ToUint8)
	return out
}
