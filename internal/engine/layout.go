package engine

import (
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
)

// layout is the order of an image's axes.
type layout string

const (
	hwc layout = "HWC"
	chw layout = "CHW"
)

// imageColumn describes a column of images of h×w pixels in c channels.
func imageColumn(name string, t api.Type, l layout, h, w, c int) api.Column {
	if l == chw {
		return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{c, h, w}, DimNames: []string{"C", "H", "W"}}
	}
	return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{h, w, c}, DimNames: []string{"H", "W", "C"}}
}

// imageLayout reads the layout of an input off its dim_names, or, where it has none, off its shape: HWC when the last
// size is at most 4. It gives the sizes too.
func imageLayout(col api.Column) (l layout, h, w, c int, err error) {
	if col.Kind != api.Tensor || len(col.Shape) != 3 {
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q must be a fixed_shape_tensor of three axes", col.Name)
	}
	s := col.Shape
	switch {
	case slices.Equal(col.DimNames, []string{"H", "W", "C"}):
		l = hwc
	case slices.Equal(col.DimNames, []string{"C", "H", "W"}):
		l = chw
	case len(col.DimNames) > 0:
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q has dim_names %v", col.Name, col.DimNames).
			WithHint("Known: [H W C] and [C H W].")
	case s[2] <= 4:
		l = hwc
	default:
		l = chw
	}
	if slices.Contains(s, 0) {
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q has an empty shape %v", col.Name, s)
	}
	if l == hwc {
		return l, s[0], s[1], s[2], nil
	}
	return l, s[1], s[2], s[0], nil
}

// reorder copies images between layouts: src in layout from, dst in layout to.
func reorder[E any](dst, src []E, from, to layout, h, w, c int) {
	if from == to {
		copy(dst, src)
		return
	}
	rows, cols := h*w, c // HWC → CHW is the transpose of an [H·W, C] matrix
	if from == chw {
		rows, cols = c, h*w
	}
	size := rows * cols
	for base := 0; base+size <= len(src); base += size {
		for i := range rows {
			for j := range cols {
				dst[base+j*rows+i] = src[base+i*cols+j]
			}
		}
	}
}

// toHWC gives images in the device's layout; the input itself where it has it already.
func toHWC(src []float32, from layout, h, w, c int) []float32 {
	if from == hwc {
		return src
	}
	dst := make([]float32, len(src))
	reorder(dst, src, from, hwc, h, w, c)
	return dst
}
