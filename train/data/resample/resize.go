package resample

import "fmt"

// Image is a picture of bytes.
type Image struct {
	Height, Width, Channels int
	Pixels                  []uint8 // [Height, Width, Channels]
}

// Resize returns the image at another size. It panics unless the sizes are positive.
func (im Image) Resize(height, width int, f Filter) Image {
	if height <= 0 || width <= 0 {
		panic(fmt.Sprintf("resample: an image of %d×%d pixels", height, width))
	}
	if width != im.Width {
		im = im.resizeRows(width, f)
	}
	if height != im.Height {
		im = im.resizeColumns(height, f)
	}
	return im
}

func (im Image) resizeRows(width int, f Filter) Image {
	c := im.Channels
	out := Image{im.Height, width, c, make([]uint8, im.Height*width*c)}
	windows := f.windows(im.Width, width)
	for y := range im.Height {
		row, dst := im.Pixels[y*im.Width*c:][:im.Width*c], out.Pixels[y*width*c:][:width*c]
		for x, win := range windows {
			for ch := range c {
				sum, at := half, win.from*c+ch
				for _, weight := range win.weight {
					sum += int32(row[at]) * weight
					at += c
				}
				dst[x*c+ch] = toByte(sum)
			}
		}
	}
	return out
}

func (im Image) resizeColumns(height int, f Filter) Image {
	n := im.Width * im.Channels
	out := Image{height, im.Width, im.Channels, make([]uint8, height*n)}
	sums := make([]int32, n)
	for y, win := range f.windows(im.Height, height) {
		for i := range sums {
			sums[i] = half
		}
		for k, weight := range win.weight {
			row := im.Pixels[(win.from+k)*n:][:n]
			for i, v := range row {
				sums[i] += int32(v) * weight
			}
		}
		dst := out.Pixels[y*n:][:n]
		for i, sum := range sums {
			dst[i] = toByte(sum)
		}
	}
	return out
}

// half rounds a sum of weighted bytes to the nearest.
const half = int32(1) << (precision - 1)

func toByte(sum int32) uint8 { return uint8(min(max(sum>>precision, 0), 255)) }

// Crop returns the part of height×width pixels whose upper left corner is (y, x).
func (im Image) Crop(y, x, height, width int) Image {
	out := Image{height, width, im.Channels, make([]uint8, 0, height*width*im.Channels)}
	for row := y; row < y+height; row++ {
		at := (row*im.Width + x) * im.Channels
		out.Pixels = append(out.Pixels, im.Pixels[at:at+width*im.Channels]...)
	}
	return out
}
