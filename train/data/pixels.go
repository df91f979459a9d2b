package data

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// Only this file converts bytes to floats, floats to bytes, and layouts. The Python client has the same functions
// (anisoflight/images.py); both are tested against testdata/pixels.json.

// Layout is the order of an image's axes.
type Layout string

// The layouts: channels last, and channels first.
const (
	HWC Layout = "HWC"
	CHW Layout = "CHW"
)

// Convert writes images of h×w pixels in c channels in another layout, each value converted by value, such as
// FromUint8. It panics unless dst is as long as src.
func Convert[D, S any](dst []D, src []S, from, to Layout, h, w, c int, value func(S) D) {
	if len(dst) != len(src) {
		panic("data: Convert needs as much room as there are values")
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

// Reorder is Convert without a conversion of values.
func Reorder[E any](dst, src []E, from, to Layout, h, w, c int) {
	if from == to {
		copy(dst, src)
		return
	}
	Convert(dst, src, from, to, h, w, c, func(v E) E { return v })
}

// ToHWC returns images with the channels last; src itself if it is of that layout.
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

// FromUint8 returns the float of a byte, v/127.5 − 1, computed in float64 and rounded once.
func FromUint8(v uint8) float32 { return byteFloats[v] }

var byteFloats = func() (t [256]float32) {
	for i := range t {
		t[i] = float32(float64(i)/127.5 - 1)
	}
	return t
}()

// ToUint8 returns the byte nearest to a float, 127.5·x + 127.5 clamped to 0 … 255, ties to even. NaN becomes 0.
func ToUint8(x float32) uint8 {
	v := math.RoundToEven(127.5*float64(x) + 127.5)
	if !(v > 0) {
		return 0
	}
	return uint8(min(v, 255))
}

// floats reads little-endian floats: in place if the machine is little-endian and the bytes are aligned.
func floats(b []byte) []float32 {
	n := len(b) / 4
	if n == 0 {
		return []float32{}
	}
	if littleEndian && uintptr(unsafe.Pointer(&b[0]))%4 == 0 {
		return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Image writes image i to dst as [H, W, C], with flip mirrored left to right. Bytes become floats by [FromUint8],
// floats are normalized. It panics unless len(dst) is H·W·C. A stored file that cannot be read is an *[Error].
func (d *Dataset) Image(i int, flip bool, dst []float32) error {
	if len(dst) != d.Pixels() {
		panic("data: Image needs room for H·W·C values")
	}
	return d.guard(func() { d.image(i, flip, dst) })
}

const (
	// blockImages and blockNumbers bound the images, and their values, that Each reads at a time.
	blockImages  = 256
	blockNumbers = 1 << 22
	// groupNumbers is the number of values that one core reads at a time, those of at least one image.
	groupNumbers = 1 << 15
)

// Each calls use with the images of the indices which, nil for all, block by block in order. Images are [n, H, W, C],
// those of [Dataset.Image] in float64, with their labels, −1 for none; both are valid until the next block. All cores
// read a block; its size depends on the size of an image alone. After each block Each calls report, which may be nil,
// with the number of images done.
func (d *Dataset) Each(ctx context.Context, which []int, report func(done, total int),
	use func(labels []int32, images []float64) error,
) error {
	if err := d.Check(ctx); err != nil {
		return err
	}
	n, size := d.Len(), d.Pixels()
	if which != nil {
		n = len(which)
	}
	block, group := min(n, max(1, min(blockImages, blockNumbers/size))), max(1, groupNumbers/size)
	images, labels := make([]float64, block*size), make([]int32, block)
	errs := make([]error, (block+group-1)/group)
	for begin := 0; begin < n; begin += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := min(block, n-begin)
		safely.For((block+group-1)/group, func(g int) {
			errs[g] = d.protect(func() {
				im := make([]float32, size)
				for k := g * group; k < min((g+1)*group, block); k++ {
					i := begin + k
					if which != nil {
						i = which[i]
					}
					labels[k] = d.Label(i)
					d.image(i, false, im)
					for q, v := range im {
						images[k*size+q] = float64(v)
					}
				}
			})
		})
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := use(labels[:block], images[:block*size]); err != nil {
			return err
		}
		if report != nil {
			report(begin+block, n)
		}
	}
	return nil
}

func (d *Dataset) image(i int, flip bool, dst []float32) {
	n, im := d.Pixels(), &d.images
	if im.Uint8 != nil {
		Convert(dst, im.Uint8[i*n:(i+1)*n], im.Layout, HWC, im.Height, im.Width, im.Channels, FromUint8)
	} else {
		Reorder(dst, im.Float32[i*n:(i+1)*n], im.Layout, HWC, im.Height, im.Width, im.Channels)
		im.Normalization.Forward(dst)
	}
	if flip {
		Mirror(dst, im.Width, im.Channels)
	}
}
