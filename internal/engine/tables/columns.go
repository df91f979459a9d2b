package tables

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train/data"
)

// CheckColumns checks the columns of an input: all of required are there, and all others are optional; their types,
// kinds and shapes agree. A nil shape agrees with any, and integers with every integer type (see Int32s). Columns of
// one name are alternatives.
func CheckColumns(in api.Schema, required, optional []api.Column) error {
	seen := map[string]bool{}
	for _, col := range in.Columns {
		if seen[col.Name] {
			return api.Errorf(api.BadTensor, "Column %q is there twice", col.Name)
		}
		seen[col.Name] = true
		want := columnsNamed(col.Name, required, optional)
		if len(want) == 0 {
			return api.Errorf(api.BadTensor, "Column %q is unknown", col.Name).
				WithHint("The columns are: %s.", names(slices.Concat(required, optional)))
		}
		if !slices.ContainsFunc(want, func(w api.Column) bool { return agrees(col, w) }) {
			return api.Errorf(api.BadTensor, "Column %q must be %s, got %s", col.Name, ExpectedType(want...), ActualType(col))
		}
	}
	for _, want := range required {
		if !seen[want.Name] {
			return api.Errorf(api.BadTensor, "Column %q is missing", want.Name).
				WithHint("It is %s.", ExpectedType(columnsNamed(want.Name, required)...))
		}
	}
	return nil
}

func columnsNamed(name string, lists ...[]api.Column) (out []api.Column) {
	for _, list := range lists {
		for _, c := range list {
			if c.Name == name {
				out = append(out, c)
			}
		}
	}
	return out
}

func names(columns []api.Column) string {
	var words []string
	for _, c := range columns {
		words = append(words, c.Name)
	}
	return strings.Join(slices.Compact(words), " ")
}

// agrees reports whether a column is as wanted.
func agrees(col, want api.Column) bool {
	if isInteger(want) {
		return isInteger(col)
	}
	return col.Type == want.Type && col.Kind == want.Kind && (want.Shape == nil || slices.Equal(col.Shape, want.Shape))
}

// isInteger reports whether a column has an integer in each row.
func isInteger(c api.Column) bool {
	return c.Kind == api.Scalar && slices.Contains([]api.Type{api.Uint8, api.Int32, api.Int64, api.Uint64}, c.Type)
}

// ExpectedType names the type of an expected column, which may have alternatives of one kind. An axis of any size has
// its name.
func ExpectedType(alternatives ...api.Column) string {
	c := alternatives[0]
	if isInteger(c) {
		return c.Type.String() + " or another type of integers"
	}
	var types []string
	for _, a := range alternatives {
		types = append(types, a.Type.String())
	}
	axes := c.DimNames
	if c.Shape != nil {
		axes = nil
	}
	return typeText(c, strings.Join(types, "|"), axes)
}

// ActualType names the type of a received column as in Arrow.
func ActualType(c api.Column) string {
	name := c.Type.String()
	if c.Declared != "" {
		name = c.Declared
	}
	return typeText(c, name, nil)
}

// typeText names the type of c, with a type of numbers, and with axes in place of a nil shape.
func typeText(c api.Column, numbers string, axes []string) string {
	for _, n := range c.Shape {
		axes = append(axes, strconv.Itoa(n))
	}
	shape := ""
	if len(axes) > 0 {
		shape = "[" + strings.Join(axes, ",") + "]"
	}
	switch c.Kind {
	case api.Tensor:
		return "fixed_shape_tensor<" + numbers + ">" + shape
	case api.List:
		return "fixed_size_list<" + numbers + ">" + shape
	}
	return numbers
}

// Int32s returns the named column, of any type of integers, as int32. Its errors count rows from first.
func Int32s(s api.Schema, b api.Batch, name string, first int64) ([]int32, error) {
	switch v := b.Cols[s.Index(name)].(type) {
	case []uint8:
		return toInt32(name, first, v)
	case []int64:
		return toInt32(name, first, v)
	case []uint64:
		return toInt32(name, first, v)
	}
	return api.ColumnOf[int32](s, b, name), nil
}

func toInt32[N uint8 | int64 | uint64](name string, first int64, values []N) ([]int32, error) {
	out := make([]int32, len(values))
	for i, v := range values {
		if out[i] = int32(v); N(out[i]) != v || (out[i] > 0) != (v > 0) {
			return nil, api.Errorf(api.BadTensor, "Column %q must have values in the range of int32, got %d in row %d", name, v,
				first+int64(i))
		}
	}
	return out, nil
}

// Finite checks that a column has neither NaN nor infinities.
func Finite[F float32 | float64](column string, values []F, perRow int) error {
	for i, v := range values {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return api.Errorf(api.BadTensor, "Column %q must be finite, got %v in row %d", column, v, i/perRow)
		}
	}
	return nil
}

// NotFinite returns the number of rows that have a NaN or an infinity.
func NotFinite(values []float32, perRow int) (n int) {
	for row := range slices.Chunk(values, perRow) {
		if slices.ContainsFunc(row, func(v float32) bool { return v-v != 0 }) {
			n++
		}
	}
	return n
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

// ImageAlternatives returns the alternatives of a column "image" that has bytes or floats.
func ImageAlternatives() (out []api.Column) {
	for _, t := range []api.Type{api.Uint8, api.Float32} {
		out = append(out, api.Column{Name: "image", Type: t, Kind: api.Tensor, DimNames: []string{"H", "W", "C"}})
	}
	return out
}

// ImageColumn describes a column of images of h×w pixels in c channels.
func ImageColumn(name string, t api.Type, l data.Layout, h, w, c int) api.Column {
	if l == data.CHW {
		return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{c, h, w}, DimNames: []string{"C", "H", "W"}}
	}
	return api.Column{Name: name, Type: t, Kind: api.Tensor, Shape: []int{h, w, c}, DimNames: []string{"H", "W", "C"}}
}

// ImageLayout returns the layout and the sizes of an input by its dim_names, or by its shape if it has none: HWC if the
// last size is at most 4.
func ImageLayout(col api.Column) (l data.Layout, h, w, c int, err error) {
	if col.Kind != api.Tensor || len(col.Shape) != 3 {
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q must be a fixed_shape_tensor of three axes, got %s",
			col.Name, ActualType(col))
	}
	s := col.Shape
	switch {
	case slices.Equal(col.DimNames, []string{"H", "W", "C"}):
		l = data.HWC
	case slices.Equal(col.DimNames, []string{"C", "H", "W"}):
		l = data.CHW
	case len(col.DimNames) > 0:
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q has dim_names %v", col.Name, col.DimNames).
			WithHint("Known: [H W C] and [C H W].")
	case s[2] <= 4:
		l = data.HWC
	default:
		l = data.CHW
	}
	if slices.Contains(s, 0) {
		return "", 0, 0, 0, api.Errorf(api.BadTensor, "Column %q has an empty shape %v", col.Name, s)
	}
	if l == data.HWC {
		return l, s[0], s[1], s[2], nil
	}
	return l, s[1], s[2], s[0], nil
}

// CheckImageSize checks that a column has images of owner's size, and returns their layout. That size determines axes
// without names.
func CheckImageSize(col api.Column, owner string, height, width, channels int) (data.Layout, error) {
	if col.Kind == api.Tensor && len(col.DimNames) == 0 {
		last := slices.Equal(col.Shape, []int{height, width, channels})
		first := slices.Equal(col.Shape, []int{channels, height, width})
		switch {
		case last && first && channels > 1:
			return "", api.Errorf(api.BadTensor, "Column %q of shape %v must name its axes, which may be [H W C] or [C H W]",
				col.Name, col.Shape).WithHint("Give dim_names; in Python, layout=\"HWC\" or \"CHW\".")
		case last:
			return data.HWC, nil
		case first:
			return data.CHW, nil
		}
	}
	l, h, w, c, err := ImageLayout(col)
	if err != nil {
		return "", err
	}
	if h != height || w != width || c != channels {
		return "", api.Errorf(api.BadTensor,
			"Column %q must have images of the %s's %d×%d pixels in %d channels, got shape %v",
			col.Name, owner, height, width, channels, col.Shape).
			WithHint("dim_names name the axes in order: [H W C] or [C H W].")
	}
	return l, nil
}

// Images reads images and labels for a model from batches of one schema.
type Images struct {
	Layout data.Layout // of all images
	schema api.Schema
	model  *catalog.Model
}

// NewImages checks a schema: the named columns have images of the model's size, and the other columns agree with
// others.
func NewImages(m *catalog.Model, in api.Schema, names []string, more ...api.Column) (*Images, error) {
	want := append([]api.Column{{Name: "label", Type: api.Int32}}, more...)
	for _, name := range names {
		want = append(want, api.Column{Name: name, Type: api.Float32, Kind: api.Tensor})
	}
	if err := CheckColumns(in, want, nil); err != nil {
		return nil, err
	}
	out := &Images{schema: in, model: m}
	h, w, c := m.ImageSize()
	for i, name := range names {
		l, err := CheckImageSize(in.Columns[in.Index(name)], "model", h, w, c)
		if err != nil {
			return nil, err
		}
		if i > 0 && l != out.Layout {
			return nil, api.Errorf(api.BadTensor, "Columns %s and %s differ in their layout", names[0], name)
		}
		out.Layout = l
	}
	return out, nil
}

// Read returns a column of images as [H, W, C].
func (m *Images) Read(b api.Batch, name string) ([]float32, error) {
	h, w, c := m.model.ImageSize()
	values := api.ColumnOf[float32](m.schema, b, name)
	if err := Finite(name, values, h*w*c); err != nil {
		return nil, err
	}
	return data.ToHWC(values, m.Layout, h, w, c), nil
}

// Labels returns the labels of a batch, which must be classes of the model. Errors count rows from first.
func (m *Images) Labels(b api.Batch, first int64) ([]int32, error) {
	labels, err := Int32s(m.schema, b, "label", first)
	if err != nil {
		return nil, err
	}
	return labels, CheckLabels(labels, m.model.Shape.Labels)
}
