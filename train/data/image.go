package data

import (
	"runtime"

	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// Image writes image i to dst as [H, W, C] in [−1, 1], mirrored left to right if
// flip is true. Bytes become floats as in [pixels.FromUint8]. It panics unless len(dst)
// is H·W·C.
func (d *Dataset) Image(i int, flip bool, dst []float32) {
	defer runtime.KeepAlive(d) // the file stays mapped until the values are copied
	n, im := d.Pixels(), &d.images
	if len(dst) != n {
		panic("data: Image needs room for H·W·C values")
	}
	if im.Uint8 != nil {
		pixels.Convert(dst, im.Uint8[i*n:(i+1)*n], im.Layout, pixels.HWC, im.Height, im.Width, im.Channels, pixels.FromUint8)
	} else {
		pixels.Reorder(dst, im.Float32[i*n:(i+1)*n], im.Layout, pixels.HWC, im.Height, im.Width, im.Channels)
	}
	if flip {
		pixels.Mirror(dst, im.Width, im.Channels)
	}
}
