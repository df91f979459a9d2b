package source

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// Names that the arrays of a .npz may have, the first that is there counts: this program's
// own, and those of numpy.savez and of ADM's sample files.
var (
	imageArrays = []string{"images.npy", "image.npy", "arr_0.npy"}
	labelArrays = []string{"labels.npy", "label.npy", "arr_1.npy"}
)

// openNPZ opens a .npz with images [n, H, W, C], [n, C, H, W] or [n, H, W], uint8 or
// float32, and perhaps labels [n]. The images are read one by one.
func openNPZ(file string, z *zip.ReadCloser) (*Source, error) {
	entry := func(names []string) *zip.File {
		for _, name := range names {
			for _, f := range z.File {
				if f.Name == name {
					return f
				}
			}
		}
		return nil
	}
	images := entry(imageArrays)
	if images == nil {
		return nil, failf(file, "", "has no array images or arr_0")
	}
	r, form, n, err := openArray(images)
	if err != nil {
		return nil, failf(file, images.Name, "%v", err)
	}
	_ = r.Close()
	s := &Source{Format: ".npz", N: n}
	var labels []int32
	if list := entry(labelArrays); list != nil {
		if labels, err = readLabels(list); err != nil {
			return nil, failf(file, list.Name, "%v", err)
		}
		if len(labels) != n {
			return nil, failf(file, list.Name, "%d labels for %d images", len(labels), n)
		}
		s.Labels = true
	}
	s.items = func(yield func(Item, error) bool) {
		r, _, _, err := openArray(images)
		if err != nil {
			yield(Item{}, failf(file, images.Name, "%v", err))
			return
		}
		defer r.Close()
		for i := range n {
			raw := make([]byte, form.bytes())
			if _, err := io.ReadFull(r, raw); err != nil {
				yield(Item{}, failf(file, images.Name, "ends in image %d of %d: %v", i, n, err))
				return
			}
			item := Item{Name: fmt.Sprintf("%s row %d", images.Name, i), Label: -1, Decode: func() (Picture, error) { return form.picture(raw), nil }}
			if labels != nil {
				item.Label = labels[i]
			}
			if !yield(item, nil) {
				return
			}
		}
		switch rest, err := io.Copy(io.Discard, r); { // the checksum is compared at the end
		case err != nil:
			yield(Item{}, failf(file, images.Name, "%v", err))
		case rest > 0:
			yield(Item{}, failf(file, images.Name, "has %d bytes beyond its %d images", rest, n))
		}
	}
	return s, nil
}

// rawForm is how the values of an array's images lie.
type rawForm struct {
	Picture
	layout pixels.Layout
	float  bool
}

func (f rawForm) bytes() int {
	n := f.Height * f.Width * f.Channels
	if f.float {
		n *= 4
	}
	return n
}

func (f rawForm) picture(raw []byte) Picture {
	p := f.Picture
	if !f.float {
		p.Uint8 = channelsLast(raw, p, f.layout)
		return p
	}
	values := make([]float32, len(raw)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	p.Float32 = channelsLast(values, p, f.layout)
	return p
}

// openArray opens an array of n images at its first value.
func openArray(f *zip.File) (r io.ReadCloser, form rawForm, n int, err error) {
	raw, err := f.Open()
	if err != nil {
		return nil, form, 0, err
	}
	defer func() {
		if err != nil {
			_ = raw.Close()
		}
	}()
	buffered := bufio.NewReaderSize(raw, 1<<20)
	descr, shape, err := data.ReadNPYHeader(buffered)
	if err != nil {
		return nil, form, 0, err
	}
	if descr != "|u1" && descr != "<f4" {
		return nil, form, 0, fmt.Errorf("images of type %q; they are uint8, or float32 in [−1, 1]", descr)
	}
	if form, err = formOf(shape[min(1, len(shape)):], nil); err != nil {
		return nil, form, 0, fmt.Errorf("images of shape %v: %w", shape, err)
	}
	form.float = descr == "<f4"
	return struct {
		io.Reader
		io.Closer
	}{buffered, raw}, form, shape[0], nil
}

// formOf takes the shape of one image, [H, W, C], [C, H, W] or [H, W], for a form. names are
// those of the axes, if they have any; without, channels are last where the last size is
// at most 4.
func formOf(shape []int, names []string) (form rawForm, err error) {
	form.layout = pixels.HWC
	switch {
	case len(shape) == 2:
		shape = append(slices.Clone(shape), 1)
	case len(shape) != 3:
		return form, fmt.Errorf("an image has the axes H, W, C or C, H, W, or H, W")
	case len(names) == 3 && names[0] == "C", len(names) != 3 && shape[2] > 4:
		form.layout = pixels.CHW
		shape = []int{shape[1], shape[2], shape[0]}
	}
	form.Height, form.Width, form.Channels = shape[0], shape[1], shape[2]
	for _, d := range shape {
		if d <= 0 || d > maxPixels {
			return form, fmt.Errorf("an image of %d×%d pixels in %d channels", shape[0], shape[1], shape[2])
		}
	}
	if form.Height*form.Width > maxPixels || form.Channels > 4 {
		return form, fmt.Errorf("an image of %d×%d pixels in %d channels", shape[0], shape[1], shape[2])
	}
	return form, nil
}

func readLabels(f *zip.File) ([]int32, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a, err := data.ReadNPY(bufio.NewReader(r))
	if err != nil {
		return nil, err
	}
	if len(a.Shape) != 1 {
		return nil, fmt.Errorf("labels of shape %v; they have one axis", a.Shape)
	}
	return data.Labels(a)
}
