package api

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"time"
)

// Batch is some rows of a stream. Cols[i] is the flat row-major slice of Schema.Columns[i]: []uint8, []int32, []int64,
// []uint64, []float32 or []float64 of Rows × Column.Len numbers. A batch is handed over, not shared: its maker does not
// touch it again.
type Batch struct {
	Rows int
	Cols []any
}

// Event is what an operation sends: rows, progress, or both. An event without rows travels as a batch of
// no rows that carries the metadata.
type Event struct {
	Batch *Batch
	Meta  Meta
}

// Meta is the app_metadata of one message: a JSON object whose "event" is "progress", "batch" or "end".
type Meta map[string]any

// Progress says that step of steps are done. More pairs of key and value may follow.
func Progress(step, steps int, more ...any) Meta {
	m := Meta{"event": "progress", "step": step, "steps": steps}
	for i := 0; i+1 < len(more); i += 2 {
		m[fmt.Sprint(more[i])] = more[i+1]
	}
	return m
}

// ProgressEvery is the least time between two messages that carry progress alone.
const ProgressEvery = 100 * time.Millisecond

// ThrottledProgress returns a report that hands progress on now and then.
func ThrottledProgress(progress func(Meta)) func(done, total int) {
	report := ThrottledProgressByPart(progress)
	return func(done, total int) { report("", done, total) }
}

// ThrottledProgressByPart is Sparsely for work whose parts have names.
func ThrottledProgressByPart(progress func(Meta)) func(part string, done, total int) {
	var last time.Time
	return func(part string, done, total int) {
		now := time.Now()
		if now.Sub(last) < ProgressEvery {
			return
		}
		last = now
		m := Progress(done, total)
		if part != "" {
			m["part"] = part
		}
		progress(m)
	}
}

// Done is the metadata of a batch after which done of total rows have been sent; total < 0 is left out, for streams
// whose length is not known.
func Done(done, total int64) Meta {
	m := Meta{"event": "batch", "done": done}
	if total >= 0 {
		m["total"] = total
	}
	return m
}

// MakeColumn returns an empty flat slice for n rows of c.
func MakeColumn(c Column, n int) any {
	n *= c.Len()
	return reflect.MakeSlice(types[c.Type].slice, n, n).Interface()
}

// ColumnOf returns the numbers of the named column. It panics if the schema has no such column or the batch holds
// another type: both were checked when the stream was opened.
func ColumnOf[E any](s Schema, b Batch, name string) []E {
	return b.Cols[s.Index(name)].([]E)
}

// SaturatingProduct multiplies numbers of rows and stops at the largest int64, which no price allows.
func SaturatingProduct(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

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

// types describes each Type: Arrow's name is that of its kind in Go.
var types = map[Type]struct {
	kind  reflect.Kind
	slice reflect.Type
	size  int
}{
	Uint8:   {reflect.Uint8, reflect.TypeFor[[]uint8](), 1},
	Int32:   {reflect.Int32, reflect.TypeFor[[]int32](), 4},
	Int64:   {reflect.Int64, reflect.TypeFor[[]int64](), 8},
	Uint64:  {reflect.Uint64, reflect.TypeFor[[]uint64](), 8},
	Float32: {reflect.Float32, reflect.TypeFor[[]float32](), 4},
	Float64: {reflect.Float64, reflect.TypeFor[[]float64](), 8},
}

// TypeOf returns the type whose numbers are of a kind in Go, 0 if none is.
func TypeOf(kind reflect.Kind) Type {
	for t, described := range types {
		if described.kind == kind {
			return t
		}
	}
	return 0
}

// String returns Arrow's name of t.
func (t Type) String() string {
	if t == 0 {
		return ""
	}
	return types[t].kind.String()
}

// Size returns the bytes of one number.
func (t Type) Size() int { return types[t].size }

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
	// Declared is Arrow's name of an input's type of numbers, if Type is not that type: a shorter integer that arrives as
	// Int64, or a type that no operation takes, whose Type is 0.
	Declared string
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

// Job is an operation that was checked and priced and has not begun. It holds nothing that would have to be given back.
type Job struct {
	Schema     Schema
	Rows       int64 // −1 where not known beforehand
	Bytes      int64 // of the rows; −1 where not known beforehand
	BatchBytes int64 // that a message may have at the client's wish; 0: the server's choice
	// Run does the work and hands its events to emit, in order, from one goroutine. It ends early with emit's error or
	// the context's. It may be called once.
	Run func(ctx context.Context, emit func(Event) error) error
	// Waits says, at any time and from any goroutine, what Run waits for where that is a compilation:
	// {"event":"compiling",...}; nil otherwise. It may be nil.
	Waits func() Meta
	// Part returns the fields of the request that asks for samples first … first + n − 1 alone, which gives the same
	// bytes where first is a multiple of PartSize and n another, or all that is left; a field that is nil is left out. It
	// is nil where the work cannot be divided.
	Part func(first, n int) Meta
	// Samples are how many there are to divide.
	Samples int
}

// PartSize is what samples are divided at multiples of: none but whole batches, so that each is computed in a batch of
// the size that it would have had.
const PartSize = 64

// Exchange is an open operation that takes tensors in.
type Exchange struct {
	Out        Schema
	Window     int   // batches that the client should keep unanswered
	BatchBytes int64 // as a Job's
	// Begin emits what the server says before the first batch comes, for operations that ask their client. It may be nil.
	Begin func(ctx context.Context, emit func(Event) error) error
	// Do answers one batch, whose columns are those of the schema the exchange was opened with. Calls do not overlap. The
	// batch's memory is lent until Do returns: what it keeps or emits has its own.
	Do func(ctx context.Context, in Batch, emit func(Event) error) error
	// Waits is as a Job's, for Do.
	Waits func() Meta
	// End returns what the last message's metadata says beyond rows and time. It may be nil.
	End func(ctx context.Context) (map[string]any, error)
	// Close releases what the exchange holds, however it ended. Never nil; called once.
	Close func()
}

// Upload receives a table. Nothing is stored before Commit; after it, or Abort, the upload is over.
type Upload struct {
	// Write takes one batch of the schema that the upload was opened with. It does not keep the batch's memory.
	Write func(Batch) error
	// Commit checks the whole, stores it and returns the number of its rows.
	Commit func() (rows int64, err error)
	// Abort forgets everything received.
	Abort func()
}

type clientKey struct{}

// WithClient says for whom the work of a context is done, which is how the device is shared; work without a client is
// one client's.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, empty where there is none.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}
