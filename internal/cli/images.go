package cli

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/train/data"
)

// images are the final rows of a Sample operation.
type images struct {
	n, h, w, c int
	pixels     []uint8   // [n, h, w, c]; nil of values in units of their own
	values     []float32 // [n, h, w, c] in these; nil of images
	labels     []int32
	seeds      []uint64
	nfe        int32
}

// add appends the final rows of a message; previews are left out.
func (g *images) add(m client.Message) {
	s, b := m.Schema, m.Batch
	shape := s.Columns[s.Index("sample")].Shape
	g.h, g.w, g.c = shape[0], shape[1], shape[2]
	size := g.h * g.w * g.c
	steps := api.ColumnOf[int32](s, b, "step")
	labels, seeds := api.ColumnOf[int32](s, b, "label"), api.ColumnOf[uint64](s, b, "seed")
	nfe := api.ColumnOf[int32](s, b, "nfe")
	for i := range b.Rows {
		if steps[i] >= 0 {
			continue
		}
		g.n++
		switch v := b.Cols[s.Index("sample")].(type) {
		case []uint8:
			g.pixels = append(g.pixels, v[i*size:(i+1)*size]...)
		case []float32:
			g.values = append(g.values, v[i*size:(i+1)*size]...)
		}
		g.labels = append(g.labels, labels[i])
		g.seeds = append(g.seeds, seeds[i])
		g.nfe = nfe[i]
	}
}

// writePNG draws all images in a grid, row by row.
func writePNG(path string, g images, columns, scale int) error {
	if g.c != 1 && g.c != 3 {
		return errors.New("a PNG needs 1 or 3 channels; write a .npz instead")
	}
	if columns <= 0 {
		columns = int(math.Ceil(math.Sqrt(float64(g.n))))
	}
	if scale <= 0 {
		scale = max(1, 64/max(g.h, 1))
	}
	if g.values != nil {
		g.pixels = mapped(g.values, g.c)
	}
	return command.WriteFile(path, func(w io.Writer) error { return png.Encode(w, g.grid(columns, scale)) })
}

// mapped returns values [… c] as bytes, in each channel 0 for the least of all and 255 for the greatest.
func mapped(values []float32, c int) []uint8 {
	out := make([]uint8, len(values))
	for k := range c {
		low, high := math.Inf(1), math.Inf(-1)
		for i := k; i < len(values); i += c {
			low, high = min(low, float64(values[i])), max(high, float64(values[i]))
		}
		if high == low {
			high++
		}
		for i := k; i < len(values); i += c {
			out[i] = uint8(math.RoundToEven(255 * (float64(values[i]) - low) / (high - low)))
		}
	}
	return out
}

// writeNPZ writes the arrays images [n, h, w, c], labels [n] and seeds [n].
func writeNPZ(path string, g images) error {
	var values any = g.pixels
	if g.values != nil {
		values = g.values
	}
	return command.WriteFile(path, func(w io.Writer) error {
		return data.WriteNPZ(w, map[string]*data.Array{
			"images": {Shape: []int{g.n, g.h, g.w, g.c}, Values: values},
			"labels": {Shape: []int{g.n}, Values: g.labels},
			"seeds":  {Shape: []int{g.n}, Values: g.seeds},
		})
	})
}

func (g images) grid(columns, scale int) image.Image {
	const gap = 1
	cell := func(side int) int { return side*scale + gap }
	rows := (g.n + columns - 1) / columns
	img := image.NewRGBA(image.Rect(0, 0, columns*cell(g.w)+gap, rows*cell(g.h)+gap))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for i := range g.n {
		x0, y0 := i%columns*cell(g.w)+gap, i/columns*cell(g.h)+gap
		for y := range g.h * scale {
			for x := range g.w * scale {
				p := g.pixels[((i*g.h+y/scale)*g.w+x/scale)*g.c:]
				c := color.RGBA{p[0], p[0], p[0], 255}
				if g.c == 3 {
					c.G, c.B = p[1], p[2]
				}
				img.SetRGBA(x0+x, y0+y, c)
			}
		}
	}
	return img
}
