package data

import "runtime"

// Image writes image i to dst as [H, W, C] in [−1, 1], mirrored left to right if
// flip is true. Bytes become x/127.5 − 1. It panics unless len(dst) is H·W·C.
func (d *Dataset) Image(i int, flip bool, dst []float32) {
	defer runtime.KeepAlive(d) // the file stays mapped until the values are copied
	n := d.Pixels()
	if len(dst) != n {
		panic("data: Image needs room for H·W·C values")
	}
	if d.images.Uint8 != nil {
		place(d, d.images.Uint8[i*n:(i+1)*n], flip, dst, func(v uint8) float32 { return FromUint8(v) })
		return
	}
	place(d, d.images.Float32[i*n:(i+1)*n], flip, dst, func(v float32) float32 { return v })
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

// place reorders one image to [H, W, C].
func place[E uint8 | float32](d *Dataset, src []E, flip bool, dst []float32, convert func(E) float32) {
	h, w, c := d.images.Height, d.images.Width, d.images.Channels
	if d.images.Layout == HWC && !flip {
		for i, v := range src {
			dst[i] = convert(v)
		}
		return
	}
	rows, cols, chans := w*c, c, 1 // strides of src
	if d.images.Layout == CHW {
		rows, cols, chans = w, 1, h*w
	}
	k := 0
	for y := range h {
		for x := range w {
			from := x
			if flip {
				from = w - 1 - x
			}
			at := y*rows + from*cols
			for range c {
				dst[k] = convert(src[at])
				at += chans
				k++
			}
		}
	}
}
