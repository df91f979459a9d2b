package source

import "image"

// smoothed gives colours of half the resolution, as most JPEGs store them, the resolution of
// the brightness, by the triangle filter that libjpeg (and so Pillow) uses: a value weighs
// its nearest neighbour ¾ and the next one ¼, along each halved axis. Other images are
// returned as they are.
func smoothed(im *image.YCbCr) *image.YCbCr {
	w, h := im.Rect.Dx(), im.Rect.Dy()
	cw := (w + 1) / 2
	halved := im.SubsampleRatio == image.YCbCrSubsampleRatio420
	if im.Rect.Min != (image.Point{}) || cw <= 2 || !halved && im.SubsampleRatio != image.YCbCrSubsampleRatio422 {
		return im
	}
	out := *im
	out.SubsampleRatio, out.CStride = image.YCbCrSubsampleRatio444, w
	ch := h
	if halved {
		ch = (h + 1) / 2
	}
	for _, plane := range []*[]uint8{&out.Cb, &out.Cr} {
		src := *plane
		dst := make([]uint8, w*h)
		row := func(y int) []uint8 { return src[min(max(y, 0), ch-1)*im.CStride:][:cw] }
		for y := range h {
			if halved {
				between(dst[y*w:][:w], row(y/2), row(y/2-1+y%2*2))
			} else {
				along(dst[y*w:][:w], row(y))
			}
		}
		*plane = dst
	}
	return &out
}

// along doubles a row: ¾ and ¼, rounded down and up by turns.
func along(dst, src []uint8) {
	for x := range dst {
		i := x / 2
		other, round := max(i-1, 0), 1
		if x%2 == 1 {
			other, round = min(i+1, len(src)-1), 2
		}
		dst[x] = uint8((3*int(src[i]) + int(src[other]) + round) / 4)
	}
}

// between doubles a row of which near lies at ¾ and far at ¼.
func between(dst, near, far []uint8) {
	sum := func(i int) int { return 3*int(near[i]) + int(far[i]) }
	for x := range dst {
		i := x / 2
		other, round := max(i-1, 0), 8
		if x%2 == 1 {
			other, round = min(i+1, len(near)-1), 7
		}
		dst[x] = uint8((3*sum(i) + sum(other) + round) / 16)
	}
}
