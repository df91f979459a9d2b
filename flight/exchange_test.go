package flight

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
)

// input is a table as clients send it.
type input struct {
	schema api.Schema
	batch  api.Batch
}

// images is a batch of n rows of x, size×size, that all hold value, and of t.
func images(n, size int, value float32) input {
	s := api.Schema{Columns: []api.Column{
		{Name: "x", Type: api.Float32, Kind: api.Tensor, Shape: []int{size, size, 1}, DimNames: []string{"H", "W", "C"}},
		{Name: "t", Type: api.Float64},
	}}
	x, t := make([]float32, n*size*size), make([]float64, n)
	for i := range x {
		x[i] = value
	}
	for i := range t {
		t[i] = float64(i)
	}
	return input{s, api.Batch{Rows: n, Cols: []any{x, t}}}
}

func (in input) record(t *testing.T) arrow.RecordBatch {
	t.Helper()
	as, err := columns.ToArrow(in.schema)
	if err != nil {
		t.Fatal(err)
	}
	r, err := columns.Record(as, in.schema, in.batch)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// exchange is a client's side of a DoExchange.
type exchange struct {
	t      *testing.T
	stream flight.FlightService_DoExchangeClient
	writer *flight.Writer
	reader *flight.Reader
}

func (s *testServer) exchange(
	ctx context.Context, t *testing.T, command string, schema *arrow.Schema, options ...ipc.Option,
) *exchange {
	t.Helper()
	stream, err := s.client.DoExchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := flight.NewRecordWriter(stream, append(options, ipc.WithSchema(schema))...)
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(command)})
	return &exchange{t: t, stream: stream, writer: w}
}

func (x *exchange) write(r arrow.RecordBatch) {
	x.t.Helper()
	if err := x.writer.Write(r); err != nil {
		x.t.Fatal(err)
	}
}

func (x *exchange) done() {
	x.t.Helper()
	if err := errors.Join(x.writer.Close(), x.stream.CloseSend()); err != nil {
		x.t.Fatal(err)
	}
}

// next reads a message; nil at the end.
func (x *exchange) next() (arrow.RecordBatch, map[string]any, error) {
	if x.reader == nil {
		var err error
		if x.reader, err = flight.NewRecordReader(x.stream); err != nil {
			return nil, nil, err
		}
	}
	if !x.reader.Next() {
		return nil, nil, x.reader.Err()
	}
	var meta map[string]any
	if err := json.Unmarshal(x.reader.LatestAppMetadata(), &meta); err != nil {
		x.t.Errorf("app_metadata %q: %v", x.reader.LatestAppMetadata(), err)
	}
	return x.reader.RecordBatch(), meta, nil
}

// rest reads to the end: the rows of each message that has some, and the last metadata.
func (x *exchange) rest() (rows []int64, last map[string]any, err error) {
	for {
		r, meta, err := x.next()
		if r == nil {
			return rows, last, err
		}
		if r.NumRows() > 0 {
			rows = append(rows, r.NumRows())
		}
		last = meta
	}
}

// TestLockstepExchange: a client that reads the reply to each batch before it sends the next.
func TestLockstepExchange(t *testing.T) {
	s := serve(t, Config{})
	in := images(3, 2, 0.5).record(t)
	x := s.exchange(t.Context(), t, `{"op":"Denoise"}`, in.Schema())
	x.write(in)
	first, meta, err := x.next()
	if err != nil || first.NumRows() != 0 || meta["window"] != 3.0 {
		t.Fatalf("first %v, %v, %v; want a batch of no rows that announces the window", first, meta, err)
	}
	for i := range 5 {
		r, _, err := x.next()
		if err != nil || r.NumRows() != 3 {
			t.Fatalf("reply %d: %v, %v", i, r, err)
		}
		if !array.RecordEqual(r, in) {
			t.Errorf("reply %d is %v, want %v", i, r, in)
		}
		if i < 4 {
			x.write(in)
		}
	}
	x.done()
	rows, last, err := x.rest()
	if len(rows) != 0 || err != nil || last["event"] != "end" || last["rows"] != 15.0 || last["total"] != 30.0 {
		t.Errorf("at the end %v, %v, %v", rows, last, err)
	}
}

// TestSchemaComesBeforeAnyBatch: a client may wait for the reply's schema before it sends rows.
func TestSchemaComesBeforeAnyBatch(t *testing.T) {
	s := serve(t, Config{})
	in := images(3, 2, 1)
	none := in
	none.batch = columns.Empty(in.schema)
	x := s.exchange(t.Context(), t, `{"op":"Denoise"}`, in.record(t).Schema())
	x.write(none.record(t)) // arrow-go sends the schema with the first batch
	for i, wantRows := range []int64{0, 0} {
		r, meta, err := x.next()
		if err != nil || r.NumRows() != wantRows {
			t.Fatalf("message %d: %v, %v, %v", i, r, meta, err)
		}
	}
	x.done()
	if _, last, err := x.rest(); err != nil || last["event"] != "end" {
		t.Errorf("%v, %v", last, err)
	}
}

// TestWriteAllThenRead: a client may write everything, more than any transport buffers, before it reads.
func TestWriteAllThenRead(t *testing.T) {
	s := serve(t, Config{})
	in := images(16, 128, 0.5).record(t) // 1 MiB
	x := s.exchange(t.Context(), t, `{"op":"Denoise"}`, in.Schema())
	for range 60 {
		x.write(in)
	}
	x.done()
	rows, last, err := x.rest()
	if err != nil || len(rows) != 60 || last["event"] != "end" {
		t.Errorf("%d replies, %v, %v", len(rows), last, err)
	}
}

// TestUnreadRepliesAreBounded: beyond the limit the exchange ends with an error rather than blocking.
func TestUnreadRepliesAreBounded(t *testing.T) {
	s := serve(t, Config{MaxQueueBytes: 4 << 20, Patience: 100 * time.Millisecond})
	in := images(16, 128, 0.5).record(t)
	x := s.exchange(t.Context(), t, `{"op":"Denoise"}`, in.Schema())
	for range 60 {
		if x.writer.Write(in) != nil {
			break
		}
	}
	_ = x.stream.CloseSend()
	_, _, err := x.rest()
	wantStatus(t, "unread replies", err, codes.ResourceExhausted, "[TOO_LARGE] ")
}

// TestEveryBatchIsAnswered: a batch gets a reply even if the operation emits none.
func TestEveryBatchIsAnswered(t *testing.T) {
	s := serve(t, Config{})
	in := images(2, 2, 1).record(t)
	x := s.exchange(t.Context(), t, `{"op":"Denoise","quiet":true}`, in.Schema())
	x.write(in)
	x.write(in)
	x.done()
	var done []any
	for {
		r, meta, err := x.next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			break
		}
		if meta["event"] == "batch" {
			done = append(done, meta["done"])
		}
	}
	if want := []any{2.0, 4.0}; !slices.Equal(done, want) {
		t.Errorf("answers %v, want %v", done, want)
	}
}

func TestExchangeErrors(t *testing.T) {
	s := serve(t, Config{})
	in := images(2, 2, 1)
	for command, want := range map[string]string{
		`{"op":"Sing"}`:                      "[OP_NOT_FOUND] ",
		`{"oops":"Denoise"}`:                 "[BAD_REQUEST] ",
		`{"op":"Denoise","fail":"busy"}`:     "[BUSY] ",
		`{"op":"Denoise","fail":"internal"}`: "[INTERNAL] ",
		`{"op":"Denoise","fail":"panic"}`:    "[INTERNAL] ",
	} {
		x := s.exchange(t.Context(), t, command, in.record(t).Schema())
		_ = x.writer.Write(in.record(t))
		_, _, err := x.rest()
		code := map[string]codes.Code{
			"[OP_NOT_FOUND] ": codes.NotFound, "[BAD_REQUEST] ": codes.InvalidArgument,
			"[BUSY] ": codes.ResourceExhausted, "[INTERNAL] ": codes.Internal,
		}[want]
		wantStatus(t, command, err, code, want)
	}
	// A batch that cannot be used is refused after the good ones before it were answered.
	x := s.exchange(t.Context(), t, `{"op":"Denoise"}`, in.record(t).Schema())
	x.write(in.record(t))
	x.write(withNull(t, in))
	rows, _, err := x.rest()
	wantStatus(t, "null", err, codes.InvalidArgument, "[BAD_TENSOR] ")
	if !slices.Equal(rows, []int64{2}) {
		t.Errorf("replies of %v rows before the error, want one of 2", rows)
	}
	eventually(t, "end of work", time.Second, func() bool { return s.fake.working.Load() == 0 })
}

// withNull is in as a record whose second t is null.
func withNull(t *testing.T, in input) arrow.RecordBatch {
	t.Helper()
	r := in.record(t)
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Append(1)
	b.AppendNull()
	return array.NewRecordBatch(r.Schema(), []arrow.Array{r.Column(0), b.NewArray()}, r.NumRows())
}

// TestNoGoroutineStays: after calls that succeed, fail or are cancelled, their goroutines end.
func TestNoGoroutineStays(t *testing.T) {
	s := serve(t, Config{})
	in := images(2, 2, 1).record(t)
	once := func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		x := s.exchange(ctx, t, `{"op":"Denoise"}`, in.Schema())
		x.write(in)
		x.done()
		if _, _, err := x.rest(); err != nil {
			t.Error(err)
		}
	}
	once() // what a connection needs is there from now on
	before := runtime.NumGoroutine()
	for range 20 {
		once()
		ctx, cancel := context.WithCancel(t.Context())
		x := s.exchange(ctx, t, `{"op":"Denoise","tick_ms":20}`, in.Schema())
		for range 10 {
			x.write(in)
		}
		if _, _, err := x.next(); err != nil {
			t.Error(err)
		}
		cancel() // in the middle of the work
		x = s.exchange(t.Context(), t, `{"op":"Denoise","fail":"busy"}`, in.Schema())
		_ = x.writer.Write(in)
		_, _, _ = x.rest()
	}
	eventually(t, "end of work", 2*time.Second, func() bool {
		return s.fake.working.Load() == 0 && s.activeCalls() == 0 && runtime.NumGoroutine() <= before
	})
}
