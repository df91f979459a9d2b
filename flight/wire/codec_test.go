package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// images returns a record of n rows: an index and size floats each.
func images(n, size int) arrow.RecordBatch {
	floats := arrow.FixedSizeListOf(int32(size), arrow.PrimitiveTypes.Float32)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "index", Type: arrow.PrimitiveTypes.Int32},
		{Name: "image", Type: floats},
	}, nil)
	flat := func(t arrow.DataType, numbers, bytes int) *array.Data {
		b := make([]byte, bytes)
		for i := range b {
			b[i] = byte(1 + i%127)
		}
		return array.NewData(t, numbers, []*memory.Buffer{nil, memory.NewBufferBytes(b)}, nil, 0, 0)
	}
	pixels := flat(arrow.PrimitiveTypes.Float32, n*size, 4*n*size)
	list := array.NewData(floats, n, []*memory.Buffer{nil}, []arrow.ArrayData{pixels}, 0, 0)
	columns := []arrow.Array{array.MakeFromData(flat(arrow.PrimitiveTypes.Int32, n, 4*n)), array.MakeFromData(list)}
	return array.NewRecordBatch(schema, columns, int64(n))
}

// sent is a stream whose messages are encoded as gRPC does.
type sent struct {
	t        testing.TB
	messages []mem.BufferSlice
}

func (s *sent) SendMsg(m any) error {
	b, err := Codec{}.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.messages = append(s.messages, b)
	return nil
}

func (s *sent) Send(m *flight.FlightData) error { return s.SendMsg(proto.Clone(m)) }

// parsed decodes a message by protobuf alone.
func parsed(t *testing.T, message mem.BufferSlice) *flight.FlightData {
	t.Helper()
	d := new(flight.FlightData)
	if err := proto.Unmarshal(message.Materialize(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestMessagesAreThoseOfArrow compares what Writer sends with what arrow-go's own writer sends, both decoded by
// protobuf.
// They differ in padding alone.
func TestMessagesAreThoseOfArrow(t *testing.T) {
	for _, rows := range []int{0, 1, 3, 1000} {
		r := images(rows, 5)
		descriptor := &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"datasets", "x"}}
		text, err := proto.Marshal(descriptor)
		if err != nil {
			t.Fatal(err)
		}
		ours, stock := &sent{t: t}, &sent{t: t}
		w := NewWriter(ours, r.Schema(), text)
		s := flight.NewRecordWriter(stock, ipc.WithSchema(r.Schema()))
		s.SetFlightDescriptor(descriptor)
		for range 2 {
			if err := w.Write(r, []byte("news")); err != nil {
				t.Fatal(err)
			}
			if err := s.WriteWithAppMetadata(r, []byte("news")); err != nil {
				t.Fatal(err)
			}
		}
		if len(ours.messages) != len(stock.messages) {
			t.Fatalf("%d messages, arrow-go sends %d", len(ours.messages), len(stock.messages))
		}
		var got, want []*flight.FlightData
		for i := range ours.messages {
			got, want = append(got, parsed(t, ours.messages[i])), append(want, parsed(t, stock.messages[i]))
			if !proto.Equal(got[i].FlightDescriptor, want[i].FlightDescriptor) ||
				!bytes.Equal(got[i].AppMetadata, want[i].AppMetadata) {
				t.Errorf("message %d: %v %q, want %v %q", i, got[i].FlightDescriptor, got[i].AppMetadata, want[i].FlightDescriptor,
					want[i].AppMetadata)
			}
		}
		a, b := records(t, got), records(t, want)
		if len(a) != 2 || len(b) != 2 {
			t.Fatalf("%d and %d records", len(a), len(b))
		}
		for i := range a {
			if !array.RecordEqual(a[i], b[i]) || !array.RecordEqual(a[i], r) {
				t.Errorf("record %d is %v, want %v", i, a[i], b[i])
			}
		}
	}
}

// TestGoldenBytes is the first message of a stream, byte for byte, and what surrounds the body of the second.
func TestGoldenBytes(t *testing.T) {
	d := &Data{Descriptor: []byte("D"), Header: []byte("HH"), AppMetadata: []byte("meta")}
	want := "\x0a\x01D" + "\x12\x02HH" + "\x1a\x04meta" + "\xc2\x3e\x00"
	if got := d.encode().Materialize(); string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	d = &Data{Header: []byte("HH"), AppMetadata: []byte("m"), Body: [][]byte{[]byte("body")}}
	got := d.encode().Materialize()
	if len(got) != 16416+4 || string(got[:6]) != "\x12\x96\x80\x01HH" ||
		string(got[len(got)-10:]) != "\x1a\x01m\xc2\x3e\x04body" {
		t.Errorf("%d bytes, %q … %q", len(got), got[:8], got[len(got)-10:])
	}
	if result := (&Result{Body: [][]byte{
		[]byte("a"),
		[]byte("bc"),
	}}).encode().Materialize(); string(result) != "\x0a\x03abc" {
		t.Errorf("result %q", result)
	}
}

// records reads a stream's messages by arrow-go's reader. The records are copies.
func records(t *testing.T, messages []*flight.FlightData) (out []arrow.RecordBatch) {
	t.Helper()
	r, err := flight.NewRecordReader(&replay{messages})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		r.RecordBatch().Retain()
		out = append(out, r.RecordBatch())
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return out
}

// TestBodiesAreAligned looks where a body and the buffers in it begin, for messages of all sizes.
func TestBodiesAreAligned(t *testing.T) {
	for _, rows := range []int{1, 2, 3, 7, 100, 1000, 4000} {
		s := &sent{t: t}
		r := images(rows, 3)
		if err := NewWriter(s, r.Schema(), nil).Write(r, bytes.Repeat([]byte("x"), rows)); err != nil {
			t.Fatal(err)
		}
		message := s.messages[1].Materialize()
		d := parsed(t, s.messages[1])
		if at := len(message) - len(d.DataBody); at%Alignment != dataResidue || !bytes.Equal(message[at:], d.DataBody) {
			t.Errorf("%d rows: the body begins at %d", rows, at)
		}
		if len(message) < minCopied {
			t.Errorf("%d rows: %d bytes are not minCopied", rows, len(message))
		}
		for i, at := range bufferPlaces(d.DataHeader) {
			if at%Alignment != 0 {
				t.Errorf("%d rows: buffer %d begins at %d", rows, i, at)
			}
		}
	}
}

// TestNothingButThePayloadTravels checks that padding is zero, and that no memory but the record's own is sent.
func TestNothingButThePayloadTravels(t *testing.T) {
	r := images(3, 5)
	s := &sent{t: t}
	if err := NewWriter(s, r.Schema(), nil).Write(r, nil); err != nil {
		t.Fatal(err)
	}
	body := parsed(t, s.messages[1]).DataBody
	if len(body) != 128 || bytes.Count(body, []byte{0}) != 128-3*4-3*5*4 {
		t.Errorf("the body is %v", body)
	}
	if !bytes.Equal(zeros[:], make([]byte, len(zeros))) {
		t.Error("zeros are not")
	}
}

// TestSentFromWhereItLies changes a record after it was encoded: what gRPC holds changes with it.
func TestSentFromWhereItLies(t *testing.T) {
	r := images(2, 1<<10)
	s := &sent{t: t}
	if err := NewWriter(s, r.Schema(), nil).Write(r, nil); err != nil {
		t.Fatal(err)
	}
	r.Column(1).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()[0] = 42
	got := records(t, []*flight.FlightData{parsed(t, s.messages[0]), parsed(t, s.messages[1])})
	if x := got[0].Column(1).(*array.FixedSizeList).ListValues().(*array.Float32).Value(0); x != 42 {
		t.Errorf("%v: the body was copied", x)
	}
	body, err := Stream(r.Schema(), r)
	if err != nil {
		t.Fatal(err)
	}
	shared := false
	for _, piece := range body {
		shared = shared || unsafe.SliceData(piece) == unsafe.SliceData(s.messages[1][len(s.messages[1])-1].ReadOnlyData())
	}
	if !shared {
		t.Error("the body of a result was copied")
	}
}

// TestReceivedAsProtobufDoes decodes messages cut into pieces at random.
func TestReceivedAsProtobufDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	s := &sent{t: t}
	for _, rows := range []int{0, 1, 100, 30_000} {
		r := images(rows, 5)
		if err := NewWriter(s, r.Schema(), []byte{10, 1, 'x'}).Write(r, []byte("news")); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range s.messages {
		whole := m.Materialize()
		var cut mem.BufferSlice
		for rest := whole; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			cut, rest = append(cut, mem.SliceBuffer(rest[:n])), rest[n:]
		}
		got := new(flight.FlightData)
		if err := (Codec{}).Unmarshal(cut, got); err != nil {
			t.Fatal(err)
		}
		if want := parsed(t, m); !proto.Equal(got, want) {
			t.Errorf("message %d differs", i)
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(got.DataBody))); len(got.DataBody) > 0 && at%Alignment != 0 {
			t.Errorf("message %d: the body is at %x", i, at)
		}
		Recycle(got.DataBody)
	}
}

// TestResultsAreReceivedAligned receives an IPC stream as the body of a Result: the bytes are those sent, and each body
// of its messages begins at a multiple of Alignment in memory.
func TestResultsAreReceivedAligned(t *testing.T) {
	for _, rows := range []int{1, 100, 30_000} {
		r := images(rows, 5)
		pieces, err := Stream(r.Schema(), r)
		if err != nil {
			t.Fatal(err)
		}
		got := &flight.Result{Body: []byte("of another message")}
		if err := (Codec{}).Unmarshal((&Result{Body: pieces}).encode(), got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Body, bytes.Join(pieces, nil)) {
			t.Fatalf("%d rows: the bytes differ", rows)
		}
		first := slices.IndexFunc(pieces, func(p []byte) bool {
			return unsafe.SliceData(p) == unsafe.SliceData(r.Column(0).Data().Buffers()[1].Bytes())
		})
		if at := uintptr(unsafe.Pointer(&got.Body[length(pieces[:first])])); at%Alignment != 0 {
			t.Errorf("%d rows: the batch is at %x", rows, at)
		}
	}
	got := &flight.Result{Body: []byte("x")}
	if err := (Codec{}).Unmarshal(nil, got); err != nil || len(got.Body) != 0 {
		t.Errorf("an empty result: %q, %v", got.Body, err)
	}
}

// TestRecycledBodiesAreOverwritten receives a body where another one lay.
func TestRecycledBodiesAreOverwritten(t *testing.T) {
	receive := func(fill byte, n int) []byte {
		m := (&Data{Body: [][]byte{bytes.Repeat([]byte{fill}, n)}}).encode()
		d := new(flight.FlightData)
		if err := (Codec{}).Unmarshal(m, d); err != nil {
			t.Fatal(err)
		}
		return d.DataBody
	}
	for range 100 {
		Recycle(receive(0xff, 40_000))
		body := receive(1, 33_000)
		if len(body) != 33_000 || bytes.Count(body, []byte{1}) != 33_000 {
			t.Fatal("a received body holds bytes of another")
		}
		Recycle(body)
	}
	Recycle(nil)
	Recycle(make([]byte, 1<<20)[1:]) // not aligned: not kept
}

func TestOtherMessagesAreProtobuf(t *testing.T) {
	want := &flight.Ticket{Ticket: []byte("x")}
	b, err := Codec{}.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := new(flight.Ticket)
	if err := (Codec{}).Unmarshal(b, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := (Codec{}).Marshal(42); err == nil {
		t.Error("a number is encoded")
	}
	if name := (Codec{}).Name(); name != "proto" {
		t.Errorf("the codec is called %q", name)
	}
}
