package columns

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/tensor"
)

// Rows returns rows from … to − 1 of a batch. They share its memory.
func Rows(s api.Schema, b api.Batch, from, to int) api.Batch {
	out := api.Batch{Rows: to - from, Cols: make([]any, len(b.Cols))}
	for i, flat := range b.Cols {
		n := s.Columns[i].Len()
		out.Cols[i] = reflect.ValueOf(flat).Slice(from*n, to*n).Interface()
	}
	return out
}

// Empty returns a batch of no rows.
func Empty(s api.Schema) api.Batch {
	b := api.Batch{}
	for _, c := range s.Columns {
		b.Cols = append(b.Cols, api.MakeColumn(c, 0))
	}
	return b
}

// Append appends the rows of b, which has the same schema, to dst.
func Append(dst *api.Batch, b api.Batch) {
	dst.Rows += b.Rows
	for i, flat := range b.Cols {
		dst.Cols[i] = reflect.AppendSlice(reflect.ValueOf(dst.Cols[i]), reflect.ValueOf(flat)).Interface()
	}
}

// Record returns a batch as an Arrow record that shares its memory. as is the schema s as an Arrow schema. The error of
// a batch that does not fit its schema is a bug of the caller.
func Record(as *arrow.Schema, s api.Schema, b api.Batch) (arrow.RecordBatch, error) {
	if len(b.Cols) != len(s.Columns) {
		return nil, fmt.Errorf("a batch of %d columns for a schema of %d", len(b.Cols), len(s.Columns))
	}
	columns := make([]arrow.Array, len(b.Cols))
	for i, flat := range b.Cols {
		c := s.Columns[i]
		typ, numbers, bytes := flatBytes(flat)
		if typ != c.Type || numbers != b.Rows*c.Len() {
			return nil, fmt.Errorf("column %q holds %d numbers of %s, want %d of %s", c.Name, numbers, typ, b.Rows*c.Len(),
				c.Type)
		}
		data := array.NewData(arrowTypes[c.Type], numbers, []*memory.Buffer{nil, memory.NewBufferBytes(bytes)}, nil, 0, 0)
		if c.Kind != api.Scalar {
			data = array.NewData(as.Field(i).Type, b.Rows, []*memory.Buffer{nil}, []arrow.ArrayData{data}, 0, 0)
		}
		columns[i] = array.MakeFromData(data)
	}
	return array.NewRecordBatch(as, columns, int64(b.Rows)), nil
}

// flatBytes returns a column's memory as bytes, in the machine's order, which on all supported machines is Arrow's.
func flatBytes(flat any) (typ api.Type, numbers int, b []byte) {
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice {
		return 0, 0, nil
	}
	typ = api.TypeOf(v.Type().Elem().Kind())
	return typ, v.Len(), unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*typ.Size())
}

// Batch returns a received record as a batch of schema s. It copies only integers of fewer bits than int64, which
// become int64. A record that has a null, or columns shorter than it claims, is BAD_TENSOR.
func Batch(s api.Schema, r arrow.RecordBatch) (api.Batch, error) {
	b := api.Batch{Rows: int(r.NumRows()), Cols: make([]any, len(s.Columns))}
	for i, c := range s.Columns {
		column := r.Column(i)
		if c.Type == 0 {
			return b, api.Errorf(api.BadTensor, "Column %q has numbers of type %s, which no operation takes", c.Name, c.Declared)
		}
		if err := refuseNulls(c, column); err != nil {
			return b, err
		}
		from := 0
		if t, ok := column.(*tensor.Array); ok {
			column = t.Storage()
		}
		if list, ok := column.(*array.FixedSizeList); ok {
			from = list.Data().Offset() * c.Len()
			column = list.ListValues()
			if err := refuseNulls(c, column); err != nil {
				return b, err
			}
		}
		if column.Len()-from < b.Rows*c.Len() {
			return b, api.Errorf(api.BadTensor, "Column %q holds %d numbers, %d rows need %d", c.Name, column.Len()-from, b.Rows,
				b.Rows*c.Len())
		}
		flat, ok := numbersOf(column, from, b.Rows*c.Len())
		if !ok {
			return b, api.Errorf(api.BadTensor, "Column %q is not of %s", c.Name, c.Type)
		}
		b.Cols[i] = flat
	}
	return b, nil
}

// refuseNulls returns an error if an array of column c has a null. A client may send a negative count of nulls, which
// means that the bitmap has them, and a bitmap that is shorter than the array.
func refuseNulls(c api.Column, a arrow.Array) error {
	count, bitmap := a.Data().NullN(), a.NullBitmapBytes()
	if count == 0 || (count < 0 && len(bitmap) == 0) {
		return nil
	}
	if end := a.Data().Offset() + a.Len(); len(bitmap)*8 < end {
		return api.Errorf(api.BadTensor, "Column %q claims %d nulls, and its validity bitmap has %d bits for %d values",
			c.Name, count, len(bitmap)*8, end).WithHint("Send every number, and no bitmap.")
	}
	for i := range a.Len() {
		if a.IsNull(i) {
			return api.Errorf(api.BadTensor, "Column %q holds a null at %d", c.Name, i).WithHint("Send every number.")
		}
	}
	if count < 0 {
		return nil
	}
	return api.Errorf(api.BadTensor, "Column %q claims %d nulls, and its validity bitmap has none", c.Name, count).
		WithHint("Send every number, and no bitmap.")
}

// numbersOf returns the n numbers of an array that begin at from.
func numbersOf(a arrow.Array, from, n int) (flat any, ok bool) {
	to := from + n
	switch a := a.(type) {
	case *array.Uint8:
		return a.Uint8Values()[from:to], true
	case *array.Int32:
		return a.Int32Values()[from:to], true
	case *array.Int64:
		return a.Int64Values()[from:to], true
	case *array.Uint64:
		return a.Uint64Values()[from:to], true
	case *array.Int8:
		return widened(a.Int8Values()[from:to]), true
	case *array.Int16:
		return widened(a.Int16Values()[from:to]), true
	case *array.Uint16:
		return widened(a.Uint16Values()[from:to]), true
	case *array.Uint32:
		return widened(a.Uint32Values()[from:to]), true
	case *array.Float32:
		return a.Float32Values()[from:to], true
	case *array.Float64:
		return a.Float64Values()[from:to], true
	}
	return nil, false
}

func widened[N int8 | int16 | uint16 | uint32](values []N) []int64 {
	out := make([]int64, len(values))
	for i, v := range values {
		out[i] = int64(v)
	}
	return out
}
