package engine

import (
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

const (
	hwc = pixels.HWC
	chw = pixels.CHW
)

// imageColumn describes a column of images of h×w pixels in c channels.
func imageColumn(name string, t api.Type, l pixels.Layout, h, w, c int) api.Column {
	if l == chw {
		return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{c, h, w}, DimNames: []string{"C", "H", "W"}}
	}
	return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{h, w, c}, DimNames: []string{"H", "W", "C"}}
}

// imageLayout reads the layout of an input off its dim_names, or, where it has none, off its shape: HWC when the last
// size is at most 4. It gives the sizes too.
func imageLayout(col api.Column) (l pixels.Layout, h, w, c int, err error) {
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

// fits checks that a column holds images of the model's size and returns their layout.
func fits(m *catalog.Model, col api.Column) (pixels.Layout, error) {
	l, h, w, c, err := imageLayout(col)
	if err != nil {
		return "", err
	}
	mh, mw, mc := m.ImageSize()
	if h != mh || w != mw || c != mc {
		return "", api.Errorf(api.BadTensor, "Column %q holds images of %d×%d pixels in %d channels, the model's have %d×%d in %d",
			col.Name, h, w, c, mh, mw, mc).WithHint("dim_names tell the order of the axes: [H W C] or [C H W].")
	}
	return l, nil
}
