package flightbench

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/tensor"
)

// What travels: images of 64 × 64 × 1 float32, 128 of them in a batch of 2 MiB.
const (
	side       = 64
	rowBytes   = side * side * 4
	batchBytes = 2 << 20
	batchRows  = batchBytes / rowBytes
	blocks     = 16 // batches in turn, so that they do not all lie in the processor's caches
)

var schema = api.Schema{Columns: []api.Column{
	{Name: "x", Type: api.Float32, Kind: api.Tensor, Shape: []int{side, side, 1}, DimNames: []string{"H", "W", "C"}},
}}

// pixels are the batches' numbers; nobody writes to them once they are made.
func pixels() [blocks][]float32 {
	var p [blocks][]float32
	for i := range p {
		p[i] = make([]float32, batchRows*side*side)
		for j := range p[i] {
			p[i][j] = float32(i + j)
		}
	}
	return p
}

// arrowSchema is schema in Arrow.
func arrowSchema() (*arrow.Schema, error) {
	t, err := tensor.New(arrow.PrimitiveTypes.Float32, []int{side, side, 1}, []string{"H", "W", "C"})
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema([]arrow.Field{{Name: "x", Type: t}}, nil), nil
}

// record gives the first rows of a batch as a record.
func record(s *arrow.Schema, p []float32, rows int) arrow.RecordBatch {
	flat := arrow.Float32Traits.CastToBytes(p[:rows*side*side])
	numbers := array.NewData(arrow.PrimitiveTypes.Float32, rows*side*side, []*memory.Buffer{nil, memory.NewBufferBytes(flat)}, nil, 0, 0)
	images := array.NewData(s.Field(0).Type, rows, []*memory.Buffer{nil}, []arrow.ArrayData{numbers}, 0, 0)
	return array.NewRecordBatch(s, []arrow.Array{array.MakeFromData(images)}, int64(rows))
}

// batches calls do with the number and the rows of each batch of so many rows in all.
func batches(rows int, do func(i, n int) error) error {
	for i := 0; rows > 0; i++ {
		n := min(rows, batchRows)
		if err := do(i, n); err != nil {
			return err
		}
		rows -= n
	}
	return nil
}
