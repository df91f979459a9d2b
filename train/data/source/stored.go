package source

import (
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// openStored opens a stored data set.
func openStored(dir string) (*Source, error) {
	d, err := data.Load(dir)
	if known := (*data.Error)(nil); errors.As(err, &known) {
		return nil, &data.Error{File: dir, Entry: known.File, Row: known.Row, Msg: known.Msg}
	}
	if err != nil {
		return nil, err
	}
	s := &Source{Format: "stored data set", N: d.Len(), Labels: d.HasLabels()}
	s.items = func(yield func(Item, error) bool) {
		for i := range d.Len() {
			item := Item{Name: fmt.Sprintf("image %d", i), Label: d.Label(i), Decode: func() (Picture, error) {
				p := Picture{Height: d.Height(), Width: d.Width(), Channels: d.Channels()}
				if d.IsFloat() {
					p.Float32 = make([]float32, d.Pixels())
					d.Image(i, false, p.Float32)
					return p, nil
				}
				p.Uint8 = channelsLast(d.Uint8(i, i+1), p, d.Layout())
				return p, nil
			}}
			if !yield(item, nil) {
				return
			}
		}
	}
	return s, nil
}

// channelsLast gives values of an image in any layout as [H, W, C].
func channelsLast[E uint8 | float32](values []E, p Picture, layout pixels.Layout) []E {
	if layout != pixels.CHW || p.Channels == 1 {
		return values
	}
	out := make([]E, 0, len(values))
	plane := p.Height * p.Width
	for i := range plane {
		for c := range p.Channels {
			out = append(out, values[c*plane+i])
		}
	}
	return out
}
