package columns

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/tensor"
)

// arrowTypes has the Arrow type of each number type.
var arrowTypes = map[api.Type]arrow.DataType{
	api.Uint8:   arrow.PrimitiveTypes.Uint8,
	api.Int32:   arrow.PrimitiveTypes.Int32,
	api.Int64:   arrow.PrimitiveTypes.Int64,
	api.Uint64:  arrow.PrimitiveTypes.Uint64,
	api.Float32: arrow.PrimitiveTypes.Float32,
	api.Float64: arrow.PrimitiveTypes.Float64,
}

// ToArrow returns a schema as an Arrow schema, whose columns are not nullable.
func ToArrow(s api.Schema) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(s.Columns))
	for i, c := range s.Columns {
		t, err := arrowType(c)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		fields[i] = arrow.Field{Name: c.Name, Type: t}
	}
	keys := slices.Sorted(maps.Keys(s.Metadata))
	values := make([]string, len(keys))
	for i, k := range keys {
		values[i] = s.Metadata[k]
	}
	metadata := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &metadata), nil
}

func arrowType(c api.Column) (arrow.DataType, error) {
	value, ok := arrowTypes[c.Type]
	switch {
	case !ok:
		return nil, errors.New("it has no type")
	case c.Kind == api.Tensor:
		return tensor.New(value, c.Shape, c.DimNames)
	case c.Kind == api.List:
		return arrow.FixedSizeListOf(int32(c.Len()), value), nil
	}
	return value, nil
}

// FromArrow returns the schema of a client's stream. Columns of shorter integers are Int64. Columns of other types have
// the Type 0: the operation can name the type that it takes, and Batch refuses them.
func FromArrow(s *arrow.Schema) api.Schema {
	out := api.Schema{Metadata: s.Metadata().ToMap()}
	for _, f := range s.Fields() {
		out.Columns = append(out.Columns, inputColumn(f))
	}
	return out
}

func inputColumn(f arrow.Field) api.Column {
	c := api.Column{Name: f.Name}
	value := f.Type
	switch t := f.Type.(type) {
	case *tensor.Type:
		c.Kind, c.Shape, c.DimNames, value = api.Tensor, t.Shape(), t.DimNames(), t.Value()
	case *arrow.FixedSizeListType:
		c.Kind, c.Shape, value = api.List, []int{int(t.Len())}, t.Elem()
	}
	for name, candidate := range arrowTypes {
		if candidate.ID() == value.ID() {
			c.Type = name
			return c
		}
	}
	c.Declared = value.String()
	if c.Kind == api.Scalar && arrow.IsInteger(value.ID()) {
		c.Type = api.Int64
	}
	return c
}
