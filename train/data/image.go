package data

import (
	"runtime"
	"slices"
)

// Image writes image i to dst as [H, W, C] in [−1, 1], mirrored left to right if
// flip is true. Bytes become x/127.5 − 1. It panics unless len(dst) is H·W·C.
func (d *Dataset) Image(i int, flip bool, dst []float32) {
	defer runtime.KeepAlive(d) // the file stays mapped until the values are copied
	n := d.Pixels()
	if len(dst) != n {
		panic("data: Image needs room for H·W·C values")
	}
	switch {
	case d.images.Layout == CHW && d.images.Uint8 != nil:
		place(d, d.images.Uint8[i*n:(i+1)*n], dst, FromUint8)
	case d.images.Layout == CHW:
		place(d, d.images.Float32[i*n:(i+1)*n], dst, func(v float32) float32 { return v })
	case d.images.Uint8 != nil:
		for k, v := range d.images.Uint8[i*n : (i+1)*n] {
			dst[k] = bytesAsFloats[v]
		}
	default:
		copy(dst, d.images.Float32[i*n:(i+1)*n])
	}
	if flip {
		mirror(dst, d.Width(), d.Channels())
	}
}

// mirror turns an image [H, W, C] left to right.
func mirror(image []float32, width, channels int) {
	for row := range slices.Chunk(image, width*channels) {
		for l, r := 0, len(row)-channels; l < r; l, r = l+channels, r-channels {
			for c := range channels {
				row[l+c], row[r+c] = row[r+c], row[l+c]
			}
		}
	}
}

// FromUint8 returns the float of a byte, x/127.5 − 1.
func FromUint8(v uint8) float32 { return bytesAsFloats[v] }

// ToUint8 returns the byte nearest to a float, 127.5·x + 127.5 rounded and clamped
// to 0 … 255.
func ToUint8(x float32) uint8 {
	return uint8(min(max(127.5*x+127.5, 0), 255) + 0.5)
}

var bytesAsFloats = func() (t [256]float32) {
	for i := range t {
		t[i] = float32(float64(i)/127.5 - 1)
	}
	return t
}()

// place reorders one image from [C, H, W] to [H, W, C].
func place[E uint8 | float32](d *Dataset, src []E, dst []float32, convert func(E) float32) {
	c, plane := d.Channels(), d.Height()*d.Width()
	for ch := range c {
		for i, v := range src[ch*plane : (ch+1)*plane] {
			dst[i*c+ch] = convert(v)
		}
	}
}
