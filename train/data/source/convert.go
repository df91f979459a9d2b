package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/data/resample"
)

// Settings say what becomes of images on their way. The zero value changes nothing.
type Settings struct {
	Height, Width int                        // default: as the images are
	Transform     string                     // one of resample.Names; default resize
	Channels      int                        // 1 or 3; default: as the images are
	Progress      func(done, total int)      // default none
	Bad           func(name string, _ error) // told of images that cannot be converted, which are left out; default: the first ends the conversion
}

// Summary is what came of a conversion.
type Summary struct {
	Form    data.Form
	Images  int
	LeftOut int // images too small for the transform
	Bad     int // images told to Settings.Bad
}

// Sink stores images of one form.
type Sink interface {
	// Add stores an image [H, W, C]; label is −1 for none.
	Add(p Picture, label int32) error
}

// Convert sends the images of a source through the settings to the sink that open gives for
// the form of the first of them. All have that form, or the image that has not is a
// *[data.Error] that names it.
func Convert(ctx context.Context, s *Source, set Settings, open func(data.Form) (Sink, error)) (Summary, error) {
	prepare, err := set.prepare()
	if err != nil {
		return Summary{}, err
	}
	var sum Summary
	var sink Sink
	work := func(item Item) (Picture, error) {
		p, err := item.Decode()
		if err != nil {
			return p, err
		}
		return prepare(p)
	}
	err = each(ctx, s, work, func(i int, item Item, p Picture, err error) error {
		if set.Progress != nil {
			set.Progress(i+1, s.N)
		}
		if errors.Is(err, errLeftOut) {
			sum.LeftOut++
			return nil
		}
		if err == nil && sink != nil {
			err = sum.fits(p)
		}
		if err == nil && sink == nil {
			sum.Form = data.Form{Height: p.Height, Width: p.Width, Channels: p.Channels, Float: p.Float32 != nil, Labels: s.Labels}
			if sink, err = open(sum.Form); err != nil {
				return err
			}
		}
		if err == nil {
			err = data.CheckRow(i, p.Float32)
		}
		if err != nil {
			err = s.named(item, err)
			if set.Bad == nil {
				return err
			}
			set.Bad(item.Name, err)
			sum.Bad++
			return nil
		}
		sum.Images++
		return sink.Add(p, item.Label)
	})
	if err == nil && sum.Images == 0 {
		err = failf(s.Path, "", "there are no images left: %d are too small, %d cannot be read", sum.LeftOut, sum.Bad)
	}
	return sum, err
}

// named says where an error of an item happened.
func (s *Source) named(item Item, err error) error {
	return failf(s.Path, item.Name, "%s", reason(err))
}

// reason is what an error says, but for where it happened.
func reason(err error) string {
	var known *data.Error
	if errors.As(err, &known) {
		return known.Msg
	}
	return err.Error()
}

// fits tells whether an image has the form of the others.
func (s *Summary) fits(p Picture) error {
	switch f := s.Form; {
	case p.Channels != f.Channels:
		return fmt.Errorf("has %d channels, those before have %d; --channels makes them alike", p.Channels, f.Channels)
	case p.Height != f.Height || p.Width != f.Width:
		return fmt.Errorf("has %d×%d pixels, those before have %d×%d; --resolution makes them alike", p.Height, p.Width, f.Height, f.Width)
	}
	return nil
}

// errLeftOut says that a transform leaves an image out.
var errLeftOut = errors.New("the image is too small")

// Check tells whether the settings make sense.
func (set Settings) Check() error {
	switch {
	case set.Channels != 0 && set.Channels != 1 && set.Channels != 3:
		return fmt.Errorf("images have 1 or 3 channels, not %d", set.Channels)
	case set.Height < 0, set.Width < 0, (set.Height == 0) != (set.Width == 0), set.Height > 0 && set.Width > maxPixels/set.Height:
		return fmt.Errorf("a resolution of %d×%d pixels", set.Height, set.Width)
	case set.Transform != "" && set.Height == 0:
		return errors.New("a transform needs a resolution")
	}
	if _, err := resample.Named(set.transform()); err != nil {
		return err
	}
	return resample.Check(set.transform(), set.Height, set.Width)
}

func (set Settings) transform() string {
	if set.Transform == "" {
		return "resize"
	}
	return set.Transform
}

// prepare makes the function that an image goes through.
func (set Settings) prepare() (func(Picture) (Picture, error), error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	transform, err := resample.Named(set.transform())
	if err != nil {
		return nil, err
	}
	return func(p Picture) (Picture, error) {
		if p.Float32 != nil {
			if set.Height != 0 && (set.Transform != "" || p.Height != set.Height || p.Width != set.Width) || set.Channels != 0 && set.Channels != p.Channels {
				return p, errors.New("is of floats; only images of bytes are resized")
			}
			return p, nil
		}
		p = p.withChannels(set.Channels)
		if set.Height == 0 {
			return p, nil
		}
		im, ok := transform(resample.Image{Height: p.Height, Width: p.Width, Channels: p.Channels, Pixels: p.Uint8}, set.Height, set.Width)
		if !ok {
			return p, errLeftOut
		}
		return Picture{Height: im.Height, Width: im.Width, Channels: im.Channels, Uint8: im.Pixels}, nil
	}, nil
}

// withChannels repeats grey for colour, and makes grey of colour by the weights of ITU-R
// 601-2, (299·R + 587·G + 114·B)/1000, as Pillow does, in 16 binary places.
func (p Picture) withChannels(n int) Picture {
	switch {
	case n == 3 && p.Channels == 1:
		out := make([]uint8, 0, 3*len(p.Uint8))
		for _, v := range p.Uint8 {
			out = append(out, v, v, v)
		}
		p.Channels, p.Uint8 = 3, out
	case n == 1 && p.Channels == 3:
		out := make([]uint8, 0, len(p.Uint8)/3)
		for i := 0; i < len(p.Uint8); i += 3 {
			r, g, b := uint32(p.Uint8[i]), uint32(p.Uint8[i+1]), uint32(p.Uint8[i+2])
			out = append(out, uint8((r*19595+g*38470+b*7471+1<<15)>>16))
		}
		p.Channels, p.Uint8 = 1, out
	}
	return p
}
