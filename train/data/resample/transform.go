package resample

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Transform makes an image of a size out of one of any size. ok is false for an image
// that it leaves out.
type Transform func(im Image, height, width int) (out Image, ok bool)

// transforms are those of EDM's dataset tool, by its names.
var transforms = map[string]Transform{
	"resize":               resize,
	"center-crop":          centerCrop,
	"center-crop-wide":     centerCropWide,
	"center-crop-dhariwal": centerCropDhariwal,
}

// Named returns a transform by the name that EDM's dataset tool gives it: center-crop,
// center-crop-wide or center-crop-dhariwal; or resize, which is what that tool does
// without one.
func Named(name string) (Transform, error) {
	if t, ok := transforms[name]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("there is no transform %q; choose %s", name, strings.Join(Names(), ", "))
}

// Check tells whether a transform can make images of a size.
func Check(name string, height, width int) error {
	switch {
	case name == "center-crop-dhariwal" && height != width:
		return fmt.Errorf("center-crop-dhariwal makes squares, not %d×%d", height, width)
	case name == "center-crop-wide" && height > width:
		return fmt.Errorf("center-crop-wide makes wide images, not %d×%d", height, width)
	}
	return nil
}

// Names lists the transforms.
func Names() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range transforms {
			if !yield(name) {
				return
			}
		}
	})
}

// resize scales by Lanczos; proportions are not kept.
func resize(im Image, height, width int) (Image, bool) {
	return im.Resize(height, width, Lanczos), true
}

// centerCrop cuts the largest square out of the middle and scales it by Lanczos.
func centerCrop(im Image, height, width int) (Image, bool) {
	side := min(im.Height, im.Width)
	square := im.Crop((im.Height-side)/2, (im.Width-side)/2, side, side)
	return square.Resize(height, width, Lanczos), true
}

// centerCropWide cuts as many rows, around the middle, as the image would have at the
// target's width; scales these by Lanczos to height×width; and lays them between black
// bars in a square of width×width. Images narrower than the target, or with fewer such
// rows than it has, are left out.
func centerCropWide(im Image, height, width int) (Image, bool) {
	rows := int(math.RoundToEven(float64(width*im.Height) / float64(im.Width)))
	if im.Width < width || rows < height {
		return Image{}, false
	}
	from := max((im.Height-rows)/2, 0)
	to := min((im.Height+rows)/2, im.Height)
	cut := im.Crop(from, 0, to-from, im.Width).Resize(height, width, Lanczos)
	bars := width * im.Channels * ((width - height) / 2)
	out := Image{width, width, im.Channels, make([]uint8, width*width*im.Channels)}
	copy(out.Pixels[bars:], cut.Pixels)
	return out, true
}

// centerCropDhariwal is ADM's: halve by Box while the shorter side is at least twice the
// target, scale by Bicubic until it is the target, and cut the middle square out.
func centerCropDhariwal(im Image, height, _ int) (Image, bool) {
	side := height
	for min(im.Height, im.Width) >= 2*side {
		im = im.Resize(im.Height/2, im.Width/2, Box)
	}
	scale := float64(side) / float64(min(im.Height, im.Width))
	scaled := func(n int) int { return int(math.RoundToEven(float64(n) * scale)) }
	im = im.Resize(scaled(im.Height), scaled(im.Width), Bicubic)
	return im.Crop((im.Height-side)/2, (im.Width-side)/2, side, side), true
}
