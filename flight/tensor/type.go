package tensor

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Name is the extension's name in Arrow's list of canonical types.
const Name = "arrow.fixed_shape_tensor"

func init() {
	if err := arrow.RegisterExtensionType(&Type{}); err != nil {
		panic(err) // another package of this program implements the type
	}
}

// Error reports why a tensor type is invalid.
type Error struct{ Msg string }

func (e *Error) Error() string { return "tensor: " + e.Msg }

// Type is the type of a column of row-major tensors of one shape.
type Type struct {
	arrow.ExtensionBase
	value    arrow.DataType
	shape    []int
	dimNames []string
}

var (
	_ arrow.ExtensionType  = (*Type)(nil)
	_ array.ExtensionArray = (*Array)(nil)
)

// New returns the type of tensors of a shape with numbers of type value. dimNames has the names of the dimensions, or
// is empty. The numbers are declared not nullable, as arrow-rs requires. The product of the shape must be an int32.
func New(value arrow.DataType, shape []int, dimNames []string) (*Type, error) {
	n, err := size(shape)
	if err != nil {
		return nil, err
	}
	if len(dimNames) != 0 && len(dimNames) != len(shape) {
		return nil, &Error{fmt.Sprintf("%d dimension names for %d dimensions", len(dimNames), len(shape))}
	}
	return &Type{
		ExtensionBase: arrow.ExtensionBase{Storage: arrow.FixedSizeListOfNonNullable(n, value)},
		value:         value, shape: slices.Clone(shape), dimNames: slices.Clone(dimNames),
	}, nil
}

// size returns the product of a shape.
func size(shape []int) (int32, error) {
	n := 1
	for _, d := range shape {
		switch {
		case d <= 0:
			return 0, &Error{fmt.Sprintf("the shape %v has a dimension that is not positive", shape)}
		case n > math.MaxInt32/d:
			return 0, &Error{fmt.Sprintf("the shape %v holds more numbers than an Arrow list", shape)}
		}
		n *= d
	}
	return int32(n), nil
}

// Value returns the type of the numbers.
func (t *Type) Value() arrow.DataType { return t.value }

// Shape returns the shape of one row.
func (t *Type) Shape() []int { return slices.Clone(t.shape) }

// DimNames returns the names of the dimensions, nil if they have none.
func (t *Type) DimNames() []string { return slices.Clone(t.dimNames) }

// ExtensionName implements arrow.ExtensionType.
func (*Type) ExtensionName() string { return Name }

// ArrayType implements arrow.ExtensionType.
func (*Type) ArrayType() reflect.Type { return reflect.TypeFor[Array]() }

// String returns a description of the type.
func (t *Type) String() string {
	return fmt.Sprintf("extension<%s[value_type=%s, shape=%v, dim_names=%v]>", Name, t.value, t.shape, t.dimNames)
}

// ExtensionEquals implements arrow.ExtensionType. It compares the types of numbers, the shapes and the names.
func (t *Type) ExtensionEquals(other arrow.ExtensionType) bool {
	o, ok := other.(*Type)
	return ok && arrow.TypeEqual(t.value, o.value) && slices.Equal(t.shape, o.shape) &&
		slices.Equal(t.dimNames, o.dimNames)
}

// metadata is the JSON that describes a tensor type, as the specification of canonical extension types defines it. The
// keys have the order in which pyarrow writes them.
type metadata struct {
	Shape       []int    `json:"shape"`
	Permutation []int    `json:"permutation,omitempty"`
	DimNames    []string `json:"dim_names,omitempty"`

	Permutations any `json:"permutations,omitempty"` // arrow-rs writes this key instead, null for none
}

// Serialize implements arrow.ExtensionType.
func (t *Type) Serialize() string {
	text, err := json.Marshal(metadata{Shape: t.shape, DimNames: t.dimNames})
	if err != nil {
		panic(err) // ints and strings always marshal
	}
	return string(text)
}

// Deserialize implements arrow.ExtensionType. It refuses permutations except the identity, and the key "permutations",
// which Arrow does not define, unless it is null. Its errors are of type *Error.
func (*Type) Deserialize(storage arrow.DataType, data string) (arrow.ExtensionType, error) {
	list, ok := storage.(*arrow.FixedSizeListType)
	if !ok {
		return nil, &Error{fmt.Sprintf("the storage is %s, not a fixed_size_list", storage)}
	}
	var m metadata
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		return nil, &Error{"the description is not JSON: " + err.Error()}
	}
	if m.Shape == nil {
		return nil, &Error{"the description has no shape"}
	}
	if m.Permutations != nil {
		return nil, &Error{"the key \"permutations\" is not supported: omit it, and send row-major tensors"}
	}
	for i, p := range m.Permutation {
		if p != i || len(m.Permutation) != len(m.Shape) {
			return nil, &Error{fmt.Sprintf("the permutation %v is not supported: send row-major tensors", m.Permutation)}
		}
	}
	t, err := New(list.Elem(), m.Shape, m.DimNames)
	if err != nil {
		return nil, err
	}
	if want := t.Storage.(*arrow.FixedSizeListType).Len(); want != list.Len() {
		return nil, &Error{fmt.Sprintf("the shape %v has %d numbers and the storage %d", m.Shape, want, list.Len())}
	}
	t.Storage = list // its child may have another name
	return t, nil
}

// Array is a column of tensors. Its storage is an *array.FixedSizeList.
type Array struct{ array.ExtensionArrayBase }
