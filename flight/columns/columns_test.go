package columns

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/anisoflight/anisoflight/flight/api"
)

// everyColumn has each type that travels, and each kind.
func everyColumn() (api.Schema, api.Batch) {
	schema := api.Schema{Metadata: map[string]string{"k": "v"}, Columns: []api.Column{
		{Name: "u8", Type: api.Uint8, Kind: api.Tensor, Shape: []int{1, 2}},
		{Name: "i32", Type: api.Int32},
		{Name: "i64", Type: api.Int64},
		{Name: "u64", Type: api.Uint64},
		{Name: "f32", Type: api.Float32, Kind: api.Tensor, Shape: []int{2, 1}, DimNames: []string{"H", "W"}},
		{Name: "f64", Type: api.Float64, Kind: api.List, Shape: []int{2}},
	}}
	return schema, api.Batch{Rows: 3, Cols: []any{
		[]uint8{1, 2, 3, 4, 5, 6},
		[]int32{-1, 0, 1},
		[]int64{-1 << 63, 0, 1},
		[]uint64{1<<64 - 1, 0, 1},
		[]float32{1, 2, 3, 4, 5, 6},
		[]float64{1, 2, 3, 4, 5, 6},
	}}
}

func TestBatchesTravelWithoutCopies(t *testing.T) {
	s, b := everyColumn()
	as, err := ToArrow(s)
	if err != nil {
		t.Fatal(err)
	}
	back := FromArrow(as)
	if back.Metadata["k"] != "v" {
		t.Errorf("metadata %v", back.Metadata)
	}
	for i, c := range back.Columns {
		want := s.Columns[i]
		if c.Name != want.Name || c.Type != want.Type || c.Kind != want.Kind || !slices.Equal(c.Shape, want.Shape) ||
			!slices.Equal(c.DimNames, want.DimNames) {
			t.Errorf("column %+v came back as %+v", want, c)
		}
	}
	r, err := Record(as, s, b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Batch(back, r)
	if err != nil || got.Rows != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if &got.Cols[4].([]float32)[0] != &b.Cols[4].([]float32)[0] ||
		!slices.Equal(got.Cols[3].([]uint64), b.Cols[3].([]uint64)) {
		t.Error("the numbers were copied, or changed")
	}
	// A record that is a part of another, as readers may make them.
	part, err := Batch(back, r.NewSlice(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	cut := Rows(s, b, 1, 3)
	if !slices.Equal(part.Cols[5].([]float64), cut.Cols[5].([]float64)) ||
		!slices.Equal(part.Cols[0].([]uint8), []uint8{3, 4, 5, 6}) ||
		!slices.Equal(part.Cols[1].([]int32), []int32{0, 1}) {
		t.Errorf("rows 1 and 2 are %v", part.Cols)
	}
}

func TestBatchesThatDoNotFitAreErrors(t *testing.T) {
	s, b := everyColumn()
	as, err := ToArrow(s)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*api.Batch){
		"a column less": func(b *api.Batch) { b.Cols = b.Cols[1:] },
		"another type":  func(b *api.Batch) { b.Cols[1] = []int64{1, 2, 3} },
		"a row less":    func(b *api.Batch) { b.Cols[4] = []float32{1, 2, 3, 4} },
		"no numbers":    func(b *api.Batch) { b.Cols[4] = nil },
	} {
		bad := api.Batch{Rows: b.Rows, Cols: slices.Clone(b.Cols)}
		change(&bad)
		if _, err := Record(as, s, bad); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

// TestInputsThatLie: rows that the memory does not hold, and nulls, at both levels of a column.
func TestInputsThatLie(t *testing.T) {
	f64 := arrow.PrimitiveTypes.Float64
	list := arrow.FixedSizeListOf(2, f64)
	numbers := func(n int) arrow.ArrayData {
		return array.NewData(f64, n, []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 8*n))}, nil, 0, 0)
	}
	oneNull := memory.NewBufferBytes([]byte{0b101})
	masked := func(bitmap []byte, nulls int) arrow.ArrayData {
		validity := memory.NewBufferBytes(bitmap)
		return array.NewData(list, 9, []*memory.Buffer{validity}, []arrow.ArrayData{numbers(18)}, nulls, 0)
	}
	for name, data := range map[string]arrow.ArrayData{
		"short list": array.NewData(list, 3, []*memory.Buffer{nil}, []arrow.ArrayData{numbers(5)}, 0, 0),
		"null list":  array.NewData(list, 3, []*memory.Buffer{oneNull}, []arrow.ArrayData{numbers(6)}, 1, 0),
		"unsure list": array.NewData(list, 3, []*memory.Buffer{oneNull}, []arrow.ArrayData{numbers(6)},
			array.UnknownNullCount, 0),
		"short bitmap":        masked([]byte{255}, 1),
		"short unsure bitmap": masked([]byte{255}, array.UnknownNullCount),
		"no bitmap":           masked(nil, 2),
		"no null in it":       masked([]byte{255, 255}, 1),
		"null numbers": array.NewData(list, 1, []*memory.Buffer{nil},
			[]arrow.ArrayData{array.NewData(f64, 2, []*memory.Buffer{oneNull, memory.NewBufferBytes(make([]byte, 16))}, nil, 1,
				0)}, 0, 0),
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: list, Nullable: true}}, nil)
		s := FromArrow(schema)
		_, err := Batch(s, array.NewRecordBatch(schema, []arrow.Array{array.MakeFromData(data)}, int64(data.Len())))
		if e := api.ErrorOf(err); e == nil || e.Code != api.BadTensor {
			t.Errorf("%s: %v, want BAD_TENSOR", name, err)
		}
	}
}

// TestABitmapThatTellsOfNoNull: a count of nulls that is left to be found, and is none.
func TestABitmapThatTellsOfNoNull(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	s := FromArrow(schema)
	for name, bitmap := range map[string][]byte{"none": nil, "whole": {255, 1}} {
		data := array.NewData(arrow.PrimitiveTypes.Float64, 9, []*memory.Buffer{
			memory.NewBufferBytes(bitmap), memory.NewBufferBytes(make([]byte, 72)),
		}, nil, array.UnknownNullCount, 0)
		b, err := Batch(s, array.NewRecordBatch(schema, []arrow.Array{array.MakeFromData(data)}, 9))
		if err != nil || len(b.Cols[0].([]float64)) != 9 {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
}

func TestTypesThatNoOperationTakes(t *testing.T) {
	for _, typ := range []arrow.DataType{
		arrow.FixedWidthTypes.Float16, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.Null,
		arrow.ListOf(arrow.PrimitiveTypes.Float32), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8),
		arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)),
		arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float32}),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int32},
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ}}, nil)
		s := FromArrow(schema)
		if c := s.Columns[0]; c.Type != 0 || c.Declared == "" {
			t.Errorf("%s is %+v, want no type and its name", typ, c)
		}
		none := array.MakeArrayOfNull(memory.DefaultAllocator, typ, 0)
		_, err := Batch(s, array.NewRecordBatch(schema, []arrow.Array{none}, 0))
		if e := api.ErrorOf(err); e == nil || e.Code != api.BadTensor {
			t.Errorf("%s: %v, want BAD_TENSOR", typ, err)
		}
	}
}

func TestShorterIntegersAreWidened(t *testing.T) {
	for typ, bytes := range map[arrow.DataType][]byte{
		arrow.PrimitiveTypes.Int8:   {0x80, 1},
		arrow.PrimitiveTypes.Int16:  {0, 0x80, 1, 0},
		arrow.PrimitiveTypes.Uint16: {0, 0x80, 1, 0},
		arrow.PrimitiveTypes.Uint32: {0, 0, 0, 0x80, 1, 0, 0, 0},
	} {
		want := map[arrow.Type][]int64{
			arrow.INT8: {-1 << 7, 1}, arrow.INT16: {-1 << 15, 1}, arrow.UINT16: {1 << 15, 1}, arrow.UINT32: {1 << 31, 1},
		}[typ.ID()]
		schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ}}, nil)
		data := array.NewData(typ, 2, []*memory.Buffer{nil, memory.NewBufferBytes(bytes)}, nil, 0, 0)
		s := FromArrow(schema)
		b, err := Batch(s, array.NewRecordBatch(schema, []arrow.Array{array.MakeFromData(data)}, 2))
		if err != nil || s.Columns[0].Declared != typ.String() {
			t.Fatalf("%s: %+v, %v", typ, s, err)
		}
		if got := b.Cols[0].([]int64); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", typ, got, want)
		}
	}
}

func TestNumbersOfTensorsAreNotNullable(t *testing.T) {
	s, _ := everyColumn()
	as, err := ToArrow(s)
	if err != nil {
		t.Fatal(err)
	}
	storage := as.Field(4).Type.(arrow.ExtensionType).StorageType()
	if storage.(*arrow.FixedSizeListType).ElemField().Nullable {
		t.Errorf("%s: its numbers are nullable", storage)
	}
}
