// Package data holds the images that runs train on.
//
// A Dataset is immutable: images of one size in the type and layout they were uploaded in, with a class for each or
// none at all. A loaded one maps its file into memory, and a Writer stores images as they come: neither holds them in
// the heap. An Order gives the image at each position of a run as a function of a seed, so a resumed run needs its
// position alone. A stored data set is a folder,
//
//	images.npy     [n, H, W, C] or [n, C, H, W], uint8 or float32
//	labels.npy     [n] int32, if there are labels
//	dataset.json   {"format": "anisoflight-dataset", "version": 1, "layout": "HWC", "hash": …}
//	               with "normalization": {"mean": […], "scale": […]} of floats in their own units
//
// which appears whole or not at all and is never changed. The Python package (anisoflight.data) reads other formats and
// uploads what it reads.
//
// Begin with dataset.go.
package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
)

// Tolerance is by how much a float image may leave [−1, 1].
const Tolerance = 1e-6

// Dataset is a table of images of one size. It is immutable and safe for concurrent use. A loaded one may be larger
// than the machine's memory.
type Dataset struct {
	images  Images
	n       int
	classes int
	hash    func() string
	file    *mapped // of the images; nil if they are in the heap
}

// New returns the data set of these images. It keeps their memory, which must not change afterwards. It returns an
// *[Error] with the row of a float that is not finite or leaves [−1, 1] by more than Tolerance, or of a label below −1.
func New(im Images) (*Dataset, error) {
	d, err := newDataset(im)
	if err != nil {
		return nil, err
	}
	return d, d.checkValues()
}

// checkValues checks every image of floats.
func (d *Dataset) checkValues() error {
	var bad error
	err := d.protect(func() {
		for i := 0; bad == nil && i < len(d.images.Float32)/d.Pixels(); i++ {
			bad = d.CheckRow(i, d.images.Float32[i*d.Pixels():(i+1)*d.Pixels()])
		}
	})
	return errors.Join(err, bad)
}

// newDataset is New, without a check of the images' values.
func newDataset(im Images) (*Dataset, error) {
	if im.Layout == "" {
		im.Layout = HWC
	}
	d := &Dataset{images: im}
	d.hash = sync.OnceValue(d.computeHash)
	if err := d.checkForm(); err != nil {
		return nil, err
	}
	if (im.Uint8 == nil) == (im.Float32 == nil) {
		return nil, failf(-1, "images must be either uint8 or float32")
	}
	values := len(im.Uint8) + len(im.Float32)
	d.n = values / d.Pixels()
	switch {
	case d.n == 0:
		return nil, failf(-1, "there must be at least one image")
	case values != d.n*d.Pixels():
		return nil, failf(-1, "values must make whole images of %d, got %d", d.Pixels(), values)
	case im.Labels != nil && len(im.Labels) != d.n:
		return nil, failf(-1, "labels must be as many as images, %d, got %d", d.n, len(im.Labels))
	}
	if err := checkLabels(0, im.Labels); err != nil {
		return nil, err
	}
	for _, label := range im.Labels {
		d.classes = max(d.classes, int(label)+1)
	}
	return d, nil
}

func (d *Dataset) checkForm() error {
	im := d.images
	switch {
	case im.Height <= 0 || im.Width <= 0 || im.Channels <= 0:
		return failf(-1, "images must have positive sizes, got %d×%d pixels in %d channels", im.Height, im.Width, im.Channels)
	case im.Layout != HWC && im.Layout != CHW:
		return failf(-1, "layout must be HWC or CHW, got %q", im.Layout)
	case im.Normalization != nil && im.Uint8 != nil:
		return failf(-1, "mean and scale are those of float32; bytes are images in [−1, 1]")
	}
	if err := im.Normalization.Fits(im.Channels); err != nil {
		return failf(-1, "%v", err)
	}
	return nil
}

// MaxClasses bounds the labels of a data set and label_dim of a network: memory is taken for every label up to the
// largest.
const MaxClasses = 1 << 20

// checkLabels checks labels of images from row on.
func checkLabels(row int, labels []int32) error {
	for i, label := range labels {
		if label < -1 || label >= MaxClasses {
			return failf(row+i, "labels must count from 0 and lie below %d, with −1 for none, got %d", MaxClasses, label)
		}
	}
	return nil
}

// CheckRow checks that the data set could hold an image, in its layout and units; errors name the row.
func (d *Dataset) CheckRow(row int, x []float32) error { return d.check(row, x, d.channel) }

// CheckHWC is CheckRow of an image with the channels last, whatever the data set's layout.
func (d *Dataset) CheckHWC(row int, x []float32) error {
	return d.check(row, x, func(i int) int { return i % d.images.Channels })
}

func (d *Dataset) check(row int, x []float32, channel func(i int) int) error {
	im := &d.images
	bounded := !im.Unbounded && im.Normalization == nil
	for i, v := range x {
		switch size := math.Abs(float64(v)); {
		case bounded && !(size <= 1+Tolerance):
			return failf(row, "values must be finite and lie in [−1, 1], got %v; "+
				"a data set of others declares mean and scale", v)
		case bounded:
		case !(size <= math.MaxFloat32):
			return failf(row, "values must be finite, got %v", v)
		case !im.Normalization.IsFinite(v, channel(i)):
			return failf(row, "values must stay finite as (x − mean)/scale, got %v in channel %d", v, channel(i))
		}
	}
	return nil
}

// channel returns the channel of value i of an image in its layout.
func (d *Dataset) channel(i int) int {
	if d.images.Layout == CHW {
		return i / (d.images.Height * d.images.Width)
	}
	return i % d.images.Channels
}

// Normalization returns the map from the floats' own units to those that a network sees; nil for images in [−1, 1].
func (d *Dataset) Normalization() *normalization.Affine { return d.images.Normalization }

// WithNormalization returns the data set with the normalization of a network in place of its own; with nil it returns
// the data set itself. Bytes, and another number of channels, are an *[Error].
func (d *Dataset) WithNormalization(n *normalization.Affine) (*Dataset, error) {
	if n == nil || n.Equal(d.images.Normalization) {
		return d, nil
	}
	if !d.IsFloat() {
		return nil, failf(-1, "images must be float32, in the units that the network was trained in, got uint8")
	}
	if err := n.Fits(d.Channels()); err != nil {
		return nil, failf(-1, "%v", err)
	}
	other := *d
	other.images.Normalization = n
	return &other, nil
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

// WithoutImages returns the labels of a number of classes that no image has; nil if no image has a label.
func (d *Dataset) WithoutImages(classes int) (out []int32) {
	seen := make([]bool, classes)
	for i := range d.Len() {
		if l := int(d.Label(i)); l >= 0 && l < classes {
			seen[l] = true
		}
	}
	for l, known := range seen {
		if !known {
			out = append(out, int32(l))
		}
	}
	if len(out) == classes {
		return nil
	}
	return out
}

// HasLabels reports whether the images came with labels.
func (d *Dataset) HasLabels() bool { return d.images.Labels != nil }

// Label returns the class of image i, −1 for none.
func (d *Dataset) Label(i int) int32 {
	if d.images.Labels == nil {
		return -1
	}
	return d.images.Labels[i]
}

// IsFloat reports whether the images were given as floats.
func (d *Dataset) IsFloat() bool { return d.images.Float32 != nil }

// Uint8 returns a copy of images from … to−1 as they were given, nil for a data set of floats. A stored file that
// cannot be read is an *[Error].
func (d *Dataset) Uint8(from, to int) ([]uint8, error) { return rows(d, d.images.Uint8, from, to) }

// Float32 is Uint8 for floats; nil for a data set of bytes.
func (d *Dataset) Float32(from, to int) ([]float32, error) {
	return rows(d, d.images.Float32, from, to)
}

func rows[E uint8 | float32](d *Dataset, values []E, from, to int) (out []E, err error) {
	err = d.guard(func() {
		out = slices.Clone(values[min(from*d.Pixels(), len(values)):min(to*d.Pixels(), len(values))])
	})
	return out, err
}

// Form is what all images of a data set have in common.
type Form struct {
	Height, Width, Channels int
	Layout                  Layout // default HWC
	Float                   bool   // float32 instead of uint8
	Labels                  bool   // images come with labels
	Unbounded               bool   // floats may leave [−1, 1]

	// Normalization maps floats in their own units to those that a network sees; nil for images in [−1, 1].
	Normalization *normalization.Affine
	// MeasureMean and MeasureScale replace those of Normalization by the channels' mean, and by twice their standard
	// deviation.
	MeasureMean, MeasureScale bool
}

// Form returns what the images have in common.
func (d *Dataset) Form() Form {
	return Form{
		Height: d.Height(), Width: d.Width(), Channels: d.Channels(), Layout: d.Layout(),
		Float: d.IsFloat(), Labels: d.HasLabels(), Unbounded: d.images.Unbounded, Normalization: d.images.Normalization,
	}
}

const (
	imagesFile = "images.npy"
	labelsFile = "labels.npy"
	headFile   = "dataset.json"

	storeFormat  = "anisoflight-dataset"
	storeVersion = 1
)

// Images is what a Dataset is made of. Exactly one of Uint8 and Float32 is set; both are row-major in Layout's order,
// one image after the other.
type Images struct {
	Height, Width, Channels int
	Layout                  Layout // default HWC
	Uint8                   []uint8
	Float32                 []float32             // in [−1, 1], or in their own units with a Normalization
	Labels                  []int32               // one per image, −1 for none; nil if there are none at all
	Unbounded               bool                  // floats were drawn from a law and may leave [−1, 1]
	Normalization           *normalization.Affine // as in Form
}

// Error says what is wrong with images, and where.
type Error struct {
	File string // at fault; empty if the images came from no file
	Row  int    // image at fault, counted from 0; −1 for none
	Msg  string
	Err  error // the cause; may be nil
}

// Error implements the error interface.
func (e *Error) Error() string {
	place := "data: "
	if e.File != "" {
		place += e.File + ": "
	}
	if e.Row >= 0 {
		place += fmt.Sprintf("row %d: ", e.Row)
	}
	return place + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func failf(row int, format string, args ...any) error {
	return &Error{Row: row, Msg: fmt.Sprintf(format, args...)}
}

func errorIn(file, format string, args ...any) error {
	return &Error{File: file, Row: -1, Msg: fmt.Sprintf(format, args...)}
}
