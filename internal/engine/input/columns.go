package input

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// Want checks the columns of an input: every one of required is there, nothing but required and optional is, and
// types, kinds and shapes agree where they are given. A nil shape agrees with any.
func Want(in api.Schema, required, optional []api.Column) error {
	seen := map[string]bool{}
	for _, col := range in.Columns {
		if seen[col.Name] {
			return api.Errorf(api.BadTensor, "Column %q is there twice", col.Name)
		}
		seen[col.Name] = true
		want, ok := find(col.Name, required, optional)
		if !ok {
			return api.Errorf(api.BadTensor, "Column %q is unknown", col.Name).
				WithHint("The columns are: %s.", names(append(append([]api.Column{}, required...), optional...)))
		}
		if col.Type != want.Type || col.Kind != want.Kind || want.Shape != nil && !slices.Equal(col.Shape, want.Shape) {
			return api.Errorf(api.BadTensor, "Column %q is %s, not %s", col.Name, describeColumn(col), describeColumn(want))
		}
	}
	for _, want := range required {
		if !seen[want.Name] {
			return api.Errorf(api.BadTensor, "Column %q is missing", want.Name).WithHint("It is %s.", describeColumn(want))
		}
	}
	return nil
}

func find(name string, lists ...[]api.Column) (api.Column, bool) {
	for _, list := range lists {
		for _, c := range list {
			if c.Name == name {
				return c, true
			}
		}
	}
	return api.Column{}, false
}

func names(columns []api.Column) string {
	var words []string
	for _, c := range columns {
		words = append(words, c.Name)
	}
	return strings.Join(words, " ")
}

// describeColumn names a column's type as Arrow's users know it.
func describeColumn(c api.Column) string {
	switch c.Kind {
	case api.Tensor:
		return "fixed_shape_tensor of " + c.Type.String() + shapeText(c.Shape)
	case api.List:
		return "fixed_size_list of " + c.Type.String() + shapeText(c.Shape)
	}
	return c.Type.String()
}

func shapeText(shape []int) string {
	if shape == nil {
		return ""
	}
	return fmt.Sprintf(" %v", shape)
}

// Finite checks that a column holds neither NaN nor infinities.
func Finite[F float32 | float64](column string, values []F, perRow int) error {
	for i, v := range values {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return api.Errorf(api.BadTensor, "Column %q holds %v in row %d", column, v, i/perRow)
		}
	}
	return nil
}

// CheckLabels checks labels against the number of classes: −1 … classes−1, whatever the row.
func CheckLabels(labels []int32, classes int) error {
	for i, l := range labels {
		if l < -1 || int(l) >= classes {
			e := api.Errorf(api.BadRequest, "Label %d in row %d is not a class", l, i)
			if classes == 0 {
				return e.WithHint("This model has no classes: the label is -1.")
			}
			return e.WithHint("The classes are 0 … %d, and -1 is none.", classes-1)
		}
	}
	return nil
}

// ImageColumn describes a column of images of h×w pixels in c channels.
func ImageColumn(name string, t api.Type, l pixels.Layout, h, w, c int) api.Column {
	if l == pixels.CHW {
		return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{c, h, w}, DimNames: []string{"C", "H", "W"}}
	}
	return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{h, w, c}, DimNames: []string{"H", "W", "C"}}
}

// ImageLayout reads the layout of an input off its dim_names, or, where it has none, off its shape: HWC when the last
// size is at most 4. It returns the sizes too.
func ImageLayout(col api.Column) (l pixels.Layout, h, w, c int, err error) {
	if col.Kind != api.Tensor || len(col.Shape) != 3 {
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q must be a fixed_shape_tensor of three axes", col.Name)
	}
	s := col.Shape
	switch {
	case slices.Equal(col.DimNames, []string{"H", "W", "C"}):
		l = pixels.HWC
	case slices.Equal(col.DimNames, []string{"C", "H", "W"}):
		l = pixels.CHW
	case len(col.DimNames) > 0:
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q has dim_names %v", col.Name, col.DimNames).
			WithHint("Known: [H W C] and [C H W].")
	case s[2] <= 4:
		l = pixels.HWC
	default:
		l = pixels.CHW
	}
	if slices.Contains(s, 0) {
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q has an empty shape %v", col.Name, s)
	}
	if l == pixels.HWC {
		return l, s[0], s[1], s[2], nil
	}
	return l, s[1], s[2], s[0], nil
}

// Fits checks that a column holds images of the model's size and returns their layout.
func Fits(m *catalog.Model, col api.Column) (pixels.Layout, error) {
	l, h, w, c, err := ImageLayout(col)
	if err != nil {
		return "", err
	}
	mh, mw, mc := m.ImageSize()
	if h != mh || w != mw || c != mc {
		return "", api.Errorf(api.BadTensor,
			"Column %q holds images of %d×%d pixels in %d channels, the model's have %d×%d in %d",
			col.Name, h, w, c, mh, mw, mc).WithHint("dim_names tell the order of the axes: [H W C] or [C H W].")
	}
	return l, nil
}
