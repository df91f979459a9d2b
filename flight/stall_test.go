package flight

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// TestStalledReaders: the call of a client that does not read is ended, and delays no other call.
func TestStalledReaders(t *testing.T) {
	s := serve(t, Config{Stall: 300 * time.Millisecond})
	stream, err := s.client.DoGet(t.Context(),
		&flight.Ticket{Ticket: []byte(`{"op":"Sample","rows":1000000,"batch":16,"size":64}`)})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "start", time.Second, func() bool { return s.fake.working.Load() == 1 })
	if r := s.get(t.Context(), t, `{"op":"Sample","rows":40}`); r.err != nil || len(r.indices()) != 40 {
		t.Errorf("another reader of the same connection: %v", r.err)
	}
	eventually(t, "end", 5*time.Second, func() bool { return s.fake.working.Load() == 0 && s.activeCalls() == 0 })
	for err == nil { // what was on its way is still read
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		t.Error("the stream ended well")
	}
	wantStatus(t, "the stalled reader", err, codes.Canceled, "[CANCELLED] The client has received nothing")
}

// TestStalledWriters: an upload whose client stops sending, and a call without a request, are ended.
func TestStalledWriters(t *testing.T) {
	s := serve(t, Config{Stall: 200 * time.Millisecond, Patience: 100 * time.Millisecond})
	p := s.put(t.Context(), t, target, labels().record(t).Schema())
	if err := p.writer.Write(labels(1).record(t)); err != nil {
		t.Fatal(err)
	}
	_, err := p.stream.Recv()
	wantStatus(t, "an upload", err, codes.Canceled, "[CANCELLED] The client has sent nothing")
	exchange, err := s.client.DoExchange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = exchange.Recv()
	wantStatus(t, "an exchange", err, codes.Canceled, "[CANCELLED] The client has sent nothing")
	eventually(t, "end", time.Second, func() bool { return s.activeCalls() == 0 })
	if s.storedLabels("digits") != nil || s.aborts() != 1 {
		t.Errorf("stored %v, %d aborted", s.storedLabels("digits"), s.aborts())
	}
}

// TestRequestsThatNeverCome: a call that its client cancels before the request, and a call that ends without a request,
// are errors of the client.
func TestRequestsThatNeverCome(t *testing.T) {
	s := serve(t, Config{})
	conn := dial(t, s.address)
	for _, method := range []string{"DoGet", "DoAction", "DoPut", "DoExchange", "ListFlights"} {
		ctx, leave := context.WithCancel(t.Context())
		description := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
		if _, err := conn.NewStream(ctx, description, flightService+method); err != nil {
			t.Fatal(err)
		}
		eventually(t, method, 5*time.Second, func() bool { return s.activeCalls() == 1 })
		leave()
		eventually(t, method+" ends", 5*time.Second, func() bool { return s.activeCalls() == 0 })
		stream, err := conn.NewStream(t.Context(), description, flightService+method)
		if err == nil {
			err = stream.CloseSend()
		}
		if err == nil {
			err = stream.RecvMsg(&flight.FlightData{})
		}
		if method == "DoPut" || method == "DoExchange" {
			wantStatus(t, method, err, codes.InvalidArgument, "[BAD_")
		} else {
			wantStatus(t, method, err, codes.Internal, "cardinality violation") // gRPC's own words
		}
	}
	if logged := s.logs.String(); strings.Contains(logged, "request failed") {
		t.Errorf("the log says\n%s", logged)
	}
}

// TestQuietExchanges: between two batches of an exchange a client may be silent longer than Stall.
func TestQuietExchanges(t *testing.T) {
	s := serve(t, Config{Stall: 100 * time.Millisecond})
	in := images(2, 2, 1).record(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	x := s.exchange(ctx, t, `{"op":"Denoise"}`, in.Schema())
	x.write(in)
	time.Sleep(300 * time.Millisecond)
	x.write(in)
	x.done()
	if rows, last, err := x.rest(); len(rows) != 2 || last["event"] != "end" || err != nil {
		t.Errorf("%v, %v, %v", rows, last, err)
	}
}
