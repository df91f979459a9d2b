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
// []uint64, []float32 or []float64 of Rows × Column.Len numbers. The receiver owns the batch: its maker does not use it
// again.
type Batch struct {
	Rows int
	Cols []any
}

// Event is what an operation sends: rows, progress, or both. An event without rows is sent as an empty batch with
// metadata.
type Event struct {
	Batch *Batch
	Meta  Meta
}

// Meta is the app_metadata of one message. Its "event" is "progress", "compiling", "batch", "warning", "found" or
// "end". Any message may have a "warning", a sentence.
type Meta map[string]any

// NotFiniteWarning returns the metadata of the warning that some of a number of images are not finite; nil for none.
func NotFiniteWarning(bad, images int) Meta {
	if bad == 0 {
		return nil
	}
	return Meta{"event": "warning", "warning": fmt.Sprintf("%d of %d images are not finite: the network overflows, or "+
		"its training has diverged", bad, images)}
}

// Progress returns the metadata of progress: step of steps are done. more has further pairs of key and value.
func Progress(step, steps int, more ...any) Meta {
	m := Meta{"event": "progress", "step": step, "steps": steps}
	for i := 0; i+1 < len(more); i += 2 {
		m[fmt.Sprint(more[i])] = more[i+1]
	}
	return m
}

// ProgressEvery is the least time between two messages with progress alone.
const ProgressEvery = 100 * time.Millisecond

// ThrottledProgress returns a function that reports progress at most once every ProgressEvery.
func ThrottledProgress(progress func(Meta)) func(done, total int) {
	report := ThrottledProgressByPart(progress)
	return func(done, total int) { report("", done, total) }
}

// ThrottledProgressByPart is ThrottledProgress for work whose parts have names.
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

// Done returns the metadata of a batch after which done of total rows have been sent. A negative total, of a stream
// whose length is not known, is left out.
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

// ColumnOf returns the numbers of the named column. It panics if the schema has no such column or the batch has another
// type: both were checked when the stream was opened.
func ColumnOf[E any](s Schema, b Batch, name string) []E {
	return b.Cols[s.Index(name)].([]E)
}

// SaturatingProduct returns a·b of two numbers that are not negative, or the largest int64 if that overflows.
func SaturatingProduct(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Type is the type of a column's numbers.
type Type uint8

// The types.
const (
	Uint8 Type = iota + 1
	Int32
	Int64
	Uint64
	Float32
	Float64
)

// types describes each Type. Arrow's name of it is that of its kind in Go.
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

// TypeOf returns the type of a kind of Go's numbers, 0 if there is none.
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
	Scalar Kind = iota // one number per row
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
	// Declared is Arrow's name of an input's type if Type is another: Type is Int64 for a shorter integer, and 0 for a
	// type that no operation takes.
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

// Schema describes a stream: its columns and its metadata.
type Schema struct {
	Columns  []Column
	Metadata map[string]string
}

// Index returns the position of the named column, −1 if there is none.
func (s Schema) Index(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// RowBytes returns the number of bytes of one row.
func (s Schema) RowBytes() int64 {
	var n int64
	for _, c := range s.Columns {
		n += int64(c.Len()) * int64(c.Type.Size())
	}
	return n
}

// Job is an operation that has been validated and priced but not begun. It holds no resources.
type Job struct {
	Schema     Schema
	Rows       int64 // −1 if not known
	Bytes      int64 // of the rows; −1 if not known
	BatchBytes int64 // size of a message that the client asks for; 0: the server's choice
	// Run does the work and calls emit for each event, in order, from one goroutine. It ends early with emit's error or
	// the context's. It may be called once.
	Run func(ctx context.Context, emit func(Event) error) error
	// Waits returns {"event":"compiling",...} while Run waits for a compilation, otherwise nil. It may be called at any
	// time from any goroutine. It may be nil.
	Waits func() Meta
	// Part returns the changed fields of a request for samples first … first + n − 1 alone; a nil field is to be left out.
	// The samples have the same bytes if first is a multiple of PartSize, and n is too or reaches the last sample. Part is
	// nil if the work cannot be divided.
	Part func(first, n int) Meta
	// Samples is the number of samples to divide.
	Samples int
}

// PartSize is the unit of division: requests are split at its multiples, so that every sample is computed in a batch of
// the same size as without the split.
const PartSize = 64

// Exchange is an open operation that takes tensors in.
type Exchange struct {
	Out        Schema
	Window     int   // number of unanswered batches that the client should keep in flight
	BatchBytes int64 // as in Job
	// Begin emits what the server sends before the first batch, for operations that ask their client. It may be nil.
	Begin func(ctx context.Context, emit func(Event) error) error
	// Do answers one batch of the schema that the exchange was opened with. Calls do not overlap. Do must not keep or emit
	// the batch's memory.
	Do func(ctx context.Context, in Batch, emit func(Event) error) error
	// Waits is as in Job, for Do.
	Waits func() Meta
	// End returns the last message's metadata, except rows and time. It may be nil.
	End func(ctx context.Context) (map[string]any, error)
	// Close releases the exchange's resources. It is never nil, and is called once, however the exchange ended.
	Close func()
}

// Upload receives a table. Nothing is stored before Commit. The upload ends with Commit or Abort.
type Upload struct {
	// Write takes one batch of the schema that the upload was opened with. It must not keep the batch's memory.
	Write func(Batch) error
	// Commit checks the table, stores it and returns the number of its rows.
	Commit func() (rows int64, err error)
	// Abort discards everything received.
	Abort func()
}

type clientKey struct{}

// WithClient returns a context whose work is done for a client. Clients take turns at the device; all work without a
// client counts as one client's.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, empty if there is none.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}
