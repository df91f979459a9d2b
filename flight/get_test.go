package flight

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// message is one message as a client sees it.
type message struct {
	rows    int64
	indices []int64
	meta    map[string]any
	at      time.Duration // since the request
	bytes   int
}

// reply is all that a DoGet gave.
type reply struct {
	schema   *arrow.Schema
	messages []message
	err      error
}

func (r reply) indices() (all []int64) {
	for _, m := range r.messages {
		all = append(all, m.indices...)
	}
	return all
}

func (r reply) last() map[string]any { return r.messages[len(r.messages)-1].meta }

// sized records the size of the last message of a stream.
type sized struct {
	flight.FlightService_DoGetClient
	last int
}

func (s *sized) Recv() (*flight.FlightData, error) {
	d, err := s.FlightService_DoGetClient.Recv()
	if err == nil && len(d.GetDataHeader()) == 0 {
		return d, errors.New("a message without rows or schema")
	}
	s.last = len(d.GetDataBody())
	return d, err
}

func (s *testServer) get(ctx context.Context, t *testing.T, ticket string) (r reply) {
	t.Helper()
	start := time.Now()
	stream, err := s.client.DoGet(ctx, &flight.Ticket{Ticket: []byte(ticket)})
	if err != nil {
		return reply{err: err}
	}
	from := &sized{FlightService_DoGetClient: stream}
	reader, err := flight.NewRecordReader(from)
	if err != nil {
		return reply{err: err}
	}
	defer reader.Release()
	r.schema = reader.Schema()
	for reader.Next() {
		m := message{rows: reader.RecordBatch().NumRows(), at: time.Since(start), bytes: from.last}
		if column, ok := reader.RecordBatch().Column(0).(*array.Int64); ok {
			m.indices = slices.Clone(column.Int64Values())
		}
		if text := reader.LatestAppMetadata(); len(text) > 0 {
			if err := json.Unmarshal(text, &m.meta); err != nil {
				t.Errorf("app_metadata %s: %v", text, err)
			}
		}
		r.messages = append(r.messages, m)
	}
	r.err = reader.Err()
	return r
}

// upTo lists 0 … n−1.
func upTo(n int) (out []int64) {
	for i := range n {
		out = append(out, int64(i))
	}
	return out
}

// wantStatus checks a status' code and how its message begins.
func wantStatus(t *testing.T, what string, err error, code codes.Code, begin string) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) { // arrow-go wraps
		if s, ok := status.FromError(e); ok && errors.Unwrap(e) == nil {
			err = s.Err()
		}
	}
	if got := status.Convert(err); got.Code() != code || !strings.HasPrefix(got.Message(), begin) {
		t.Errorf("%s: got %v, want %s %s…", what, err, code, begin)
	}
}

func TestGetStreamsRows(t *testing.T) {
	r := serve(t, Config{}).get(t.Context(), t, `{"op":"Sample","rows":10,"batch":4}`)
	if r.err != nil || !slices.Equal(r.indices(), upTo(10)) {
		t.Fatalf("rows %v, error %v", r.indices(), r.err)
	}
	if first := r.messages[0]; first.rows != 0 || first.meta["event"] != "start" {
		t.Errorf("the first message is %+v, want a batch of no rows", first)
	}
	end := r.last()
	if end["event"] != "end" || end["rows"] != 10.0 || end["elapsed_s"] == nil {
		t.Errorf("the last message says %v", end)
	}
	var events []any
	for _, m := range r.messages {
		events = append(events, m.meta["event"])
	}
	want := []any{"start", "progress", "batch", "progress", "batch", "progress", "batch", "end"}
	if !slices.Equal(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
}

// TestSilenceIsBroken: the first message is sent at once, and then one at least every 500 ms. On a busy machine a
// message may be late, but not in each of three streams.
func TestSilenceIsBroken(t *testing.T) {
	const limit = 500 * time.Millisecond
	server := serve(t, Config{})
	var late time.Duration
	for range 3 {
		r := server.get(t.Context(), t, `{"op":"Sample","rows":2,"batch":1,"tick_ms":1000,"quiet":true}`)
		if r.err != nil {
			t.Fatal(r.err)
		}
		if len(r.messages) < 5 {
			t.Fatalf("%d messages in two seconds", len(r.messages))
		}
		late = 2 * r.messages[0].at
		for i, m := range r.messages {
			if i > 0 {
				late = max(late, m.at-r.messages[i-1].at)
			}
			if m.rows != 0 || m.meta["event"] == nil {
				t.Errorf("message %d is %+v", i, m)
			}
		}
		if late <= limit {
			return
		}
	}
	t.Errorf("a message came after %s", late)
}

// TestSilenceTellsOfCompilations: a heartbeat says what the work waits for.
func TestSilenceTellsOfCompilations(t *testing.T) {
	server := serve(t, Config{Heartbeat: 40 * time.Millisecond})
	r := server.get(t.Context(), t, `{"op":"Sample","rows":1,"tick_ms":300,"quiet":true,"waits":"evaluate"}`)
	if r.err != nil || len(r.messages) < 3 {
		t.Fatalf("%d messages, %v", len(r.messages), r.err)
	}
	for _, m := range r.messages[1 : len(r.messages)-1] {
		if m.meta["event"] != "compiling" || m.meta["program"] != "evaluate" || m.meta["compile_s"] != 1.5 ||
			m.meta["rows"] != 0.0 {
			t.Errorf("a heartbeat says %v", m.meta)
		}
	}
	if last := r.messages[len(r.messages)-1].meta; last["event"] != "end" {
		t.Errorf("the last message says %v", last)
	}
}

// TestBatchesAreCut: a large batch of the engine is sent in messages below the default limit of Go clients.
func TestBatchesAreCut(t *testing.T) {
	s := serve(t, Config{})
	const rows = 200 // of 48 kB
	r := s.get(t.Context(), t, `{"op":"Sample","rows":200,"batch":200,"size":64}`)
	if r.err != nil || !slices.Equal(r.indices(), upTo(rows)) {
		t.Fatalf("%d rows, error %v", len(r.indices()), r.err)
	}
	for _, m := range r.messages {
		if m.bytes > maxResultBytes {
			t.Errorf("a message of %d bytes", m.bytes)
		}
	}
	if r.messages[len(r.messages)-2].meta["done"] != float64(rows) {
		t.Errorf("the last rows say %v", r.messages[len(r.messages)-2].meta)
	}
	if r = s.get(t.Context(), t, `{"op":"Sample","rows":200,"batch":200,"size":64,"batch_bytes":20000000}`); r.err == nil {
		t.Error("a client of 4 MiB took the batch of 10 MB that was asked for")
	}
}

func TestGetErrors(t *testing.T) {
	s := serve(t, Config{})
	for _, c := range []struct {
		ticket string
		code   codes.Code
		begin  string
	}{
		{``, codes.InvalidArgument, "[BAD_REQUEST] "},
		{`{"rows":1}`, codes.InvalidArgument, "[BAD_REQUEST] "},
		{`{"op":"Sample"} {}`, codes.InvalidArgument, "[BAD_REQUEST] "},
		{`{"op":"Sample","rows":"many"}`, codes.InvalidArgument, "[BAD_REQUEST] "},
		{`{"op":"Dance"}`, codes.NotFound, "[OP_NOT_FOUND] "},
		{`{"op":"Sample","rows":9,"fail":"busy"}`, codes.ResourceExhausted, "[BUSY] Too much to do. Wait."},
		{`{"op":"Sample","rows":9,"fail":"internal"}`, codes.Internal, "[INTERNAL] request "},
		{`{"op":"Sample","rows":9,"fail":"panic"}`, codes.Internal, "[INTERNAL] request "},
	} {
		r := s.get(t.Context(), t, c.ticket)
		wantStatus(t, c.ticket, r.err, c.code, c.begin)
		if r.err != nil && strings.Contains(r.err.Error(), "secret") {
			t.Errorf("%s: the client learns %v", c.ticket, r.err)
		}
	}
	for _, secret := range []string{"42", "43", "request="} {
		if !strings.Contains(s.logs.String(), secret) {
			t.Errorf("%s is not in the log:\n%s", secret, s.logs)
		}
	}
}

// TestCancellationStopsTheWork: a cancellation, a deadline and a lost connection end the work.
func TestCancellationStopsTheWork(t *testing.T) {
	s := serve(t, Config{})
	const long = `{"op":"Sample","rows":1000000,"batch":1,"tick_ms":5}`
	idle := func() bool { return s.fake.working.Load() == 0 && s.activeCalls() == 0 }
	for name, stop := range map[string]func(context.Context) (context.Context, func()){
		"cancel": func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) },
		"deadline": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			return ctx, func() { time.Sleep(300 * time.Millisecond); cancel() }
		},
	} {
		ctx, end := stop(t.Context())
		stream, err := s.client.DoGet(ctx, &flight.Ticket{Ticket: []byte(long)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": start", time.Second, func() bool { return s.fake.working.Load() == 1 })
		end()
		eventually(t, name+": end", 500*time.Millisecond, idle)
	}
	other := connect(t, s.address)
	stream, err := other.DoGet(t.Context(), &flight.Ticket{Ticket: []byte(long)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	_ = other.Close()
	eventually(t, "connection gone", 500*time.Millisecond, idle)
}

// TestSlowReadersHoldLittle: a reader that does not read stops the work after a few batches.
func TestSlowReadersHoldLittle(t *testing.T) {
	s := serve(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	// 800 MB
	stream, err := s.client.DoGet(ctx, &flight.Ticket{Ticket: []byte(`{"op":"Sample","rows":4096,"batch":16,"size":128}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if s.fake.working.Load() != 1 {
		t.Error("the work ran ahead of its reader to the end")
	}
	cancel()
	eventually(t, "end", time.Second, func() bool { return s.fake.working.Load() == 0 && s.activeCalls() == 0 })
}
