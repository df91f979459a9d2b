package source

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // the decoders of image.Decode
	_ "image/png"
	"path"
	"strings"

	_ "golang.org/x/image/webp"
)

// Limits on what a file may claim.
const (
	maxPixels  = 1 << 26 // of one image: 8192 × 8192
	maxEncoded = 1 << 28 // bytes of an encoded image
)

// isImage tells by a name whether a file is an image that is read.
func isImage(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".webp":
		return true
	}
	return false
}

// isOtherImage tells by a name whether a file is an image that is not read: to leave it out
// without a word would make another data set.
func isOtherImage(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".avif", ".heic", ".jxl", ".jp2":
		return true
	}
	return false
}

// decode decodes a PNG, JPEG or WebP. A grey image has one channel, any other three: alpha is
// dropped, palettes are looked up, and of 16 bits the upper 8 are kept.
func decode(encoded []byte) (Picture, error) {
	cfg, _, err := image.DecodeConfig(bytes.NewReader(encoded))
	if errors.Is(err, image.ErrFormat) {
		return Picture{}, errors.New("is no PNG, JPEG or WebP")
	}
	if err != nil {
		return Picture{}, err
	}
	if cfg.Width <= 0 || cfg.Height <= 0 || cfg.Width > maxPixels/cfg.Height {
		return Picture{}, fmt.Errorf("claims %d×%d pixels; at most %d are decoded", cfg.Height, cfg.Width, maxPixels)
	}
	im, _, err := image.Decode(bytes.NewReader(encoded))
	if err != nil {
		return Picture{}, err
	}
	return pictureOf(im), nil
}

// pictureOf copies the pixels, by short cuts where there are some.
func pictureOf(im image.Image) Picture {
	b := im.Bounds()
	p := Picture{Height: b.Dy(), Width: b.Dx(), Channels: 3}
	switch im := im.(type) {
	case *image.Gray:
		p.Channels = 1
		for y := b.Min.Y; y < b.Max.Y; y++ {
			at := im.PixOffset(b.Min.X, y)
			p.Uint8 = append(p.Uint8, im.Pix[at:at+b.Dx()]...)
		}
		return p
	case *image.Gray16:
		p.Channels = 1
		p.Uint8 = make([]uint8, 0, p.Height*p.Width)
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				p.Uint8 = append(p.Uint8, uint8(im.Gray16At(x, y).Y>>8))
			}
		}
		return p
	case *image.NRGBA:
		p.Uint8 = opaque(im.Pix, im.Stride, p.Height, p.Width)
		return p
	case *image.RGBA:
		if im.Opaque() {
			p.Uint8 = opaque(im.Pix, im.Stride, p.Height, p.Width)
			return p
		}
	case *image.YCbCr:
		im = smoothed(im)
		p.Uint8 = make([]uint8, 0, 3*p.Height*p.Width)
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				at := im.COffset(x, y)
				r, g, b := color.YCbCrToRGB(im.Y[im.YOffset(x, y)], im.Cb[at], im.Cr[at])
				p.Uint8 = append(p.Uint8, r, g, b)
			}
		}
		return p
	}
	p.Uint8 = make([]uint8, 0, 3*p.Height*p.Width)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(im.At(x, y)).(color.NRGBA)
			p.Uint8 = append(p.Uint8, c.R, c.G, c.B)
		}
	}
	return p
}

// opaque takes three bytes of every four.
func opaque(pix []uint8, stride, height, width int) []uint8 {
	out := make([]uint8, 0, 3*height*width)
	for y := range height {
		row := pix[y*stride:][:4*width]
		for x := 0; x < len(row); x += 4 {
			out = append(out, row[x], row[x+1], row[x+2])
		}
	}
	return out
}
