package bench

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/tensor"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// What travels: images of 64 × 64 × 1 float32, 128 of them in a batch of 2 MiB.
const (
	side       = 64
	rowBytes   = side * side * 4
	batchBytes = 2 << 20
	batchRows  = batchBytes / rowBytes
	blocks     = 16 // batches in turn, so that they do not all lie in the processor's caches
)

var imageSchema = api.Schema{Columns: []api.Column{
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

// arrowSchema is imageSchema in Arrow.
func arrowSchema() (*arrow.Schema, error) {
	t, err := tensor.New(arrow.PrimitiveTypes.Float32, []int{side, side, 1}, []string{"H", "W", "C"})
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema([]arrow.Field{{Name: "x", Type: t}}, nil), nil
}

// records are the batches in Arrow, in the memory of pixels.
type records [blocks]arrow.RecordBatch

func newRecords(s *arrow.Schema, p [blocks][]float32) (r records) {
	for i, block := range p {
		flat := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Float32Traits.CastToBytes(block))}
		numbers := array.NewData(arrow.PrimitiveTypes.Float32, len(block), flat, nil, 0, 0)
		images := array.NewData(s.Field(0).Type, batchRows, []*memory.Buffer{nil}, []arrow.ArrayData{numbers}, 0, 0)
		r[i] = array.NewRecordBatch(s, []arrow.Array{array.MakeFromData(images)}, batchRows)
	}
	return r
}

// batch returns the first n rows of batch i.
func (r *records) batch(i, n int) arrow.RecordBatch { return r[i%blocks].NewSlice(0, int64(n)) }

// forBatches calls do for each batch, with its index i and its number of rows n, which add up to rows.
func forBatches(rows int, do func(i, n int) error) error {
	for i := 0; rows > 0; i++ {
		n := min(rows, batchRows)
		if err := do(i, n); err != nil {
			return err
		}
		rows -= n
	}
	return nil
}

// bareTCP sends a number of bytes over the loopback interface, written and read in pieces of 1 MiB.
func bareTCP(ctx context.Context, bytes int) (time.Duration, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			sent <- err
			return
		}
		defer c.Close()
		piece := make([]byte, 1<<20)
		for left := bytes; left > 0 && err == nil; {
			var n int
			n, err = c.Write(piece[:min(left, len(piece))])
			left -= n
		}
		sent <- err
	}()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	piece := make([]byte, 1<<20)
	started := time.Now()
	for left := bytes; left > 0; {
		n, err := io.ReadFull(c, piece[:min(left, len(piece))])
		if err != nil {
			return 0, err
		}
		left -= n
	}
	return time.Since(started), <-sent
}

// window is the number of batches of an exchange that are under way.
const window = 4

// flightClient does an operation a number of times and returns how long each took.
type flightClient func(ctx context.Context, operation string, rows, times int) ([]time.Duration, error)
