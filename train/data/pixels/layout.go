package pixels

import "slices"

// Layout is the order of an image's axes.
type Layout string

// The layouts: channels last, and channels first.
const (
	HWC Layout = "HWC"
	CHW Layout = "CHW"
)

// Convert writes images of h×w pixels in c channels from one layout to another, each
// value as value returns it: FromUint8, say. It panics unless dst is as long as src.
func Convert[D, S any](dst []D, src []S, from, to Layout, h, w, c int, value func(S) D) {
	if len(dst) != len(src) {
		panic("pixels: Convert needs as much room as there are values")
	}
	if from == to {
		for i, v := range src {
			dst[i] = value(v)
		}
		return
	}
	rows, cols := h*w, c // HWC → CHW transposes a matrix [H·W, C]
	if from == CHW {
		rows, cols = cols, rows
	}
	for size := rows * cols; len(src) > 0; dst, src = dst[size:], src[size:] {
		for i := range rows {
			for j, v := range src[i*cols : (i+1)*cols] {
				dst[j*rows+i] = value(v)
			}
		}
	}
}

// Reorder is Convert of values that stay as they are.
func Reorder[E any](dst, src []E, from, to Layout, h, w, c int) {
	if from == to {
		copy(dst, src)
		return
	}
	Convert(dst, src, from, to, h, w, c, func(v E) E { return v })
}

// ToHWC returns images with the channels last: src itself where it has them so.
func ToHWC[E any](src []E, from Layout, h, w, c int) []E {
	if from == HWC {
		return src
	}
	dst := make([]E, len(src))
	Reorder(dst, src, from, HWC, h, w, c)
	return dst
}

// Mirror turns an image [H, W, C] of w pixels in c channels left to right.
func Mirror[E any](image []E, w, c int) {
	for row := range slices.Chunk(image, w*c) {
		for l, r := 0, len(row)-c; l < r; l, r = l+c, r-c {
			for k := range c {
				row[l+k], row[r+k] = row[r+k], row[l+k]
			}
		}
	}
}
