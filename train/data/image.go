package data

import (
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// Image writes image i to dst as [H, W, C] in the units that a network sees, [−1, 1] where the data set has no
// normalization, mirrored left to right if flip is true. Bytes become floats as in
// [pixels.FromUint8]. It panics unless len(dst) is H·W·C. A stored file that cannot be read is an *[Error].
func (d *Dataset) Image(i int, flip bool, dst []float32) error {
	if len(dst) != d.Pixels() {
		panic("data: Image needs room for H·W·C values")
	}
	return d.guard(func() { d.image(i, flip, dst) })
}

func (d *Dataset) image(i int, flip bool, dst []float32) {
	n, im := d.Pixels(), &d.images
	if im.Uint8 != nil {
		pixels.Convert(dst, im.Uint8[i*n:(i+1)*n], im.Layout, pixels.HWC, im.Height, im.Width, im.Channels, pixels.FromUint8)
	} else {
		pixels.Reorder(dst, im.Float32[i*n:(i+1)*n], im.Layout, pixels.HWC, im.Height, im.Width, im.Channels)
		im.Normalization.Forward(dst)
	}
	if flip {
		pixels.Mirror(dst, im.Width, im.Channels)
	}
}
