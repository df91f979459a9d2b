package api

import "slices"

// Type is the type of a column's numbers.
type Type uint8

// The types that travel.
const (
	Uint8 Type = iota + 1
	Int32
	Int64
	Uint64
	Float32
	Float64
)

var (
	typeNames = map[Type]string{
		Uint8: "uint8", Int32: "int32", Int64: "int64", Uint64: "uint64", Float32: "float32",
		Float64: "float64",
	}
	typeSizes = map[Type]int{Uint8: 1, Int32: 4, Int64: 8, Uint64: 8, Float32: 4, Float64: 8}
)

// String returns Arrow's name of t.
func (t Type) String() string { return typeNames[t] }

// Size returns the bytes of one number.
func (t Type) Size() int { return typeSizes[t] }

// Kind reports how a column's numbers are grouped into rows.
type Kind uint8

// The kinds of column.
const (
	Scalar Kind = iota // one number a row
	List               // Arrow fixed_size_list: Shape is [n]
	Tensor             // Arrow's extension type fixed_shape_tensor: any Shape, row-major, never permuted
)

// Column is one column of a stream. Columns never hold nulls.
type Column struct {
	Name     string
	Type     Type
	Kind     Kind
	Shape    []int    // of one row; empty for a Scalar
	DimNames []string // of a Tensor, such as ["H","W","C"]; may be empty
}

// Len returns the number of numbers in one row.
func (c Column) Len() int {
	n := 1
	for _, d := range c.Shape {
		n *= d
	}
	return n
}

// Schema describes a stream: its columns and the text that travels with it.
type Schema struct {
	Columns  []Column
	Metadata map[string]string
}

// Index returns the position of the named column, −1 if there is none.
func (s Schema) Index(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// RowBytes returns the bytes of one row over all columns.
func (s Schema) RowBytes() int64 {
	var n int64
	for _, c := range s.Columns {
		n += int64(c.Len()) * int64(c.Type.Size())
	}
	return n
}
