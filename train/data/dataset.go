package data

import (
	"fmt"
	"math"
	"sync"
)

// Layout is the order of an image's axes.
type Layout string

// The layouts: channels last, and channels first.
const (
	HWC Layout = "HWC"
	CHW Layout = "CHW"
)

// Tolerance is by how much a float image may leave [−1, 1].
const Tolerance = 1e-6

// Images is what a Dataset is made of. Exactly one of Uint8 and Float32 is set;
// both are row-major in Layout's order, one image after the other.
type Images struct {
	Height, Width, Channels int
	Layout                  Layout // default HWC
	Uint8                   []uint8
	Float32                 []float32 // in [−1, 1]
	Labels                  []int32   // one per image, −1 for none; nil where there are none at all
	// Unbounded floats were drawn from a law and may leave [−1, 1].
	Unbounded bool
}

// Dataset is a table of images of one size. It is immutable and safe for
// concurrent use.
type Dataset struct {
	images  Images
	n       int
	classes int
	hash    func() string
}

// Error says what is wrong with a data set and where.
type Error struct {
	Row int // image at fault, counted from 0; −1 where none is to blame
	Msg string
}

// Error implements the error interface.
func (e *Error) Error() string {
	if e.Row < 0 {
		return "data: " + e.Msg
	}
	return fmt.Sprintf("data: row %d: %s", e.Row, e.Msg)
}

func failf(row int, format string, args ...any) error {
	return &Error{Row: row, Msg: fmt.Sprintf(format, args...)}
}

// New returns the data set of these images. It keeps their memory, which must not
// change afterwards. A float that is not finite or leaves [−1, 1] by more than
// Tolerance, and a label below −1, are an *[Error] that names the row.
func New(im Images) (*Dataset, error) {
	if im.Layout == "" {
		im.Layout = HWC
	}
	switch {
	case im.Height <= 0 || im.Width <= 0 || im.Channels <= 0:
		return nil, failf(-1, "images of %d×%d pixels in %d channels; every size is positive", im.Height, im.Width, im.Channels)
	case im.Layout != HWC && im.Layout != CHW:
		return nil, failf(-1, "there is no layout %q; choose HWC or CHW", im.Layout)
	case (im.Uint8 == nil) == (im.Float32 == nil):
		return nil, failf(-1, "images are either uint8 or float32")
	}
	d := &Dataset{images: im, hash: sync.OnceValue(im.hash)}
	values := len(im.Uint8) + len(im.Float32)
	d.n = values / d.Pixels()
	switch {
	case d.n == 0:
		return nil, failf(-1, "there are no images")
	case values != d.n*d.Pixels():
		return nil, failf(-1, "%d values are no whole number of images of %d", values, d.Pixels())
	case im.Labels != nil && len(im.Labels) != d.n:
		return nil, failf(-1, "%d labels for %d images", len(im.Labels), d.n)
	}
	for i := range len(im.Float32) / d.Pixels() {
		if err := d.CheckRow(i, im.Float32[i*d.Pixels():(i+1)*d.Pixels()]); err != nil {
			return nil, err
		}
	}
	for i, label := range im.Labels {
		if label < -1 {
			return nil, failf(i, "label %d; labels count from 0, and −1 means none", label)
		}
		d.classes = max(d.classes, int(label)+1)
	}
	return d, nil
}

// firstBad returns the index of the first value that no image may hold, or −1.
func firstBad(x []float32) int {
	for i, v := range x {
		if !(math.Abs(float64(v)) <= 1+Tolerance) {
			return i
		}
	}
	return -1
}

// CheckRow checks one image of floats, as New does; row is what an error names.
func CheckRow(row int, x []float32) error {
	if i := firstBad(x); i >= 0 {
		return failf(row, "value %v; images are finite and lie in [−1, 1]", x[i])
	}
	return nil
}

// CheckRow tells whether the data set could hold an image: as the function of that name,
// but for a data set without bounds.
func (d *Dataset) CheckRow(row int, x []float32) error {
	if !d.images.Unbounded {
		return CheckRow(row, x)
	}
	for _, v := range x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return failf(row, "value %v; images are finite", v)
		}
	}
	return nil
}

// Len returns the number of images.
func (d *Dataset) Len() int { return d.n }

// Height returns the images' height in pixels.
func (d *Dataset) Height() int { return d.images.Height }

// Width returns the images' width in pixels.
func (d *Dataset) Width() int { return d.images.Width }

// Channels returns the number of channels.
func (d *Dataset) Channels() int { return d.images.Channels }

// Pixels returns H·W·C, the number of values in one image.
func (d *Dataset) Pixels() int { return d.images.Height * d.images.Width * d.images.Channels }

// Layout returns the order of the axes that the images were given in.
func (d *Dataset) Layout() Layout { return d.images.Layout }

// Shape returns the shape of one image in its layout.
func (d *Dataset) Shape() []int {
	if d.images.Layout == CHW {
		return []int{d.Channels(), d.Height(), d.Width()}
	}
	return []int{d.Height(), d.Width(), d.Channels()}
}

// Classes returns one more than the largest label; 0 without labels.
func (d *Dataset) Classes() int { return d.classes }

// HasLabels reports whether the images came with labels.
func (d *Dataset) HasLabels() bool { return d.images.Labels != nil }

// Label returns the class of image i, −1 for none.
func (d *Dataset) Label(i int) int32 {
	if d.images.Labels == nil {
		return -1
	}
	return d.images.Labels[i]
}

// Uint8 returns the values of images from … to−1 as they were given, nil for a
// data set of floats. The caller must not change them.
func (d *Dataset) Uint8(from, to int) []uint8 {
	if d.images.Uint8 == nil {
		return nil
	}
	return d.images.Uint8[from*d.Pixels() : to*d.Pixels() : to*d.Pixels()]
}

// Float32 returns the values of images from … to−1 as they were given, nil for a
// data set of bytes. The caller must not change them.
func (d *Dataset) Float32(from, to int) []float32 {
	if d.images.Float32 == nil {
		return nil
	}
	return d.images.Float32[from*d.Pixels() : to*d.Pixels() : to*d.Pixels()]
}
