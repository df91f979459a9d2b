package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var list = arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64)

func schema(fields int) *arrow.Schema {
	var f []arrow.Field
	for range fields {
		f = append(f, arrow.Field{Name: "x", Type: list})
	}
	meta := arrow.NewMetadata([]string{"a"}, []string{"b"})
	return arrow.NewSchema(f, &meta)
}

// stream writes one batch of n rows.
func stream(t testing.TB, n int, options ...ipc.Option) []byte {
	t.Helper()
	b := array.NewFixedSizeListBuilder(memory.DefaultAllocator, 2, arrow.PrimitiveTypes.Float64)
	defer b.Release()
	for range n {
		b.Append(true)
		b.ValueBuilder().(*array.Float64Builder).AppendValues([]float64{1, 2}, nil)
	}
	column := b.NewArray()
	defer column.Release()
	record := array.NewRecordBatch(schema(1), []arrow.Array{column}, int64(n))
	defer record.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, append(options, ipc.WithSchema(record.Schema()))...)
	if err := errors.Join(w.Write(record), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestHeadersThatClaimTooMuchAreRefused(t *testing.T) {
	deep := arrow.DataType(arrow.PrimitiveTypes.Float64)
	for range maxDepth + 1 {
		deep = arrow.FixedSizeListOf(1, deep)
	}
	half := arrow.StructOf(schema(maxFields / 2).Fields()...)
	for what, s := range map[string]*arrow.Schema{
		"more than maxFields columns": schema(maxFields + 1),
		"two columns of maxFields/2 fields": arrow.NewSchema([]arrow.Field{
			{Name: "x", Type: half}, {Name: "y", Type: half},
		}, nil),
		"deep columns": arrow.NewSchema([]arrow.Field{{Name: "x", Type: deep}}, nil),
	} {
		var out bytes.Buffer
		if err := ipc.NewWriter(&out, ipc.WithSchema(s)).Close(); err != nil {
			t.Fatal(err)
		}
		if err := CheckHeader(split(out.Bytes())[0].DataHeader); err == nil {
			t.Errorf("%s pass", what)
		}
	}
	for _, h := range [][]byte{nil, {1}, {0, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 64)} {
		if CheckHeader(h) == nil {
			t.Errorf("%v passes", h)
		}
	}
}

func TestAllocatorBoundsLiveBytes(t *testing.T) {
	a := NewAllocator(1000)
	b := a.Allocate(600)
	b = a.Reallocate(1000, b)
	if a.live.Load() != 1000 {
		t.Fatalf("%d bytes live, want 1000", a.live.Load())
	}
	if e := refused(func() { a.Allocate(1) }); e == nil || e.Limit != 1000 || e.Live != 1000 {
		t.Errorf("one byte more: %v", e)
	}
	b = a.Reallocate(300, b)
	c := a.Allocate(700)
	a.Free(b)
	a.Free(c)
	if a.live.Load() != 0 {
		t.Errorf("%d bytes live after all was freed", a.live.Load())
	}
	if refused(func() { a.Allocate(-5) }) == nil {
		t.Error("a negative size passes")
	}
	if a.live.Load() != 0 || a.Refused() == nil {
		t.Errorf("%d bytes live, refused %v", a.live.Load(), a.Refused())
	}
}

func refused(f func()) (e *TooLarge) {
	defer func() { e, _ = recover().(*TooLarge) }()
	f()
	return nil
}

// TestDecompressionBomb claims 2^40 bytes in a compressed body of a few dozen; ordinary compressed batches, far more of
// them than the limit, are read.
func TestDecompressionBomb(t *testing.T) {
	for name, option := range map[string]ipc.Option{"lz4": ipc.WithLZ4(), "zstd": ipc.WithZstd()} {
		honest := stream(t, 4096, option) // 64 KiB
		for i := range 20 {
			a := NewAllocator(200 << 10)
			if n, err := read(honest, a); err != nil || n != 4096 {
				t.Fatalf("%s %d: %d rows, %v", name, i, n, err)
			}
			if a.live.Load() != 0 {
				t.Fatalf("%s: %d bytes live at the end", name, a.live.Load())
			}
		}
		// The body of a compressed batch begins with the claimed length of its first buffer.
		size := binary.LittleEndian.AppendUint64(nil, 4096*16)
		i := bytes.LastIndex(honest, size)
		if i < 0 {
			t.Fatal("no length found")
		}
		bomb := bytes.Clone(honest)
		binary.LittleEndian.PutUint64(bomb[i:], 1<<40)
		a := NewAllocator(200 << 10)
		_, err := read(bomb, a)
		var e *TooLarge
		if !errors.As(err, &e) || a.Refused() == nil {
			t.Errorf("%s: %v, want a *TooLarge", name, err)
		}
	}
}

func read(stream []byte, a *Allocator) (rows int64, err error) {
	r, err := ipc.NewReader(bytes.NewReader(stream), ipc.WithAllocator(a))
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	return rows, r.Err()
}
