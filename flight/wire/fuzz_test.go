package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// FuzzCodec decodes bytes as messages that carry tables, in one piece and cut in two. What protobuf takes, Codec takes
// with the same fields, except for groups; what protobuf refuses, Codec refuses.
func FuzzCodec(f *testing.F) {
	s := &sent{t: f}
	r := images(3, 2)
	if err := NewWriter(s, r.Schema(), []byte{10, 1, 'x'}).Write(r, []byte("news")); err != nil {
		f.Fatal(err)
	}
	for _, m := range s.messages {
		f.Add(m.Materialize(), 7)
	}
	f.Add((&Data{Header: []byte("H"), Body: [][]byte{[]byte("b")}}).encode().Materialize()[16<<10:], 0)
	f.Add([]byte("\x0a\x02\x10\x01\x12\x02HH\x1a\x01m\xc2\x3e\x03abc\x12\x01h\xc2\x3e\x01d"), 3) // fields twice
	f.Add([]byte("\x08\x05\x15\x01\x02\x03\x04\x19\x01\x02\x03\x04\x05\x06\x07\x08\xc2\x3e\x00"), 1)
	f.Fuzz(func(t *testing.T, message []byte, cut int) {
		cut = min(max(0, cut), len(message))
		for _, b := range []mem.BufferSlice{
			{mem.SliceBuffer(message)},
			{mem.SliceBuffer(message[:cut]), mem.SliceBuffer(message[cut:])},
		} {
			got, want := new(flight.FlightData), new(flight.FlightData)
			if bothTake(t, message, b, got, want) && (!proto.Equal(got.FlightDescriptor, want.FlightDescriptor) ||
				!bytes.Equal(got.DataHeader, want.DataHeader) || !bytes.Equal(got.AppMetadata, want.AppMetadata) ||
				!bytes.Equal(got.DataBody, want.DataBody)) {
				t.Fatalf("%v, want %v", got, want)
			}
			result, wanted := new(flight.Result), new(flight.Result)
			if bothTake(t, message, b, result, wanted) && !bytes.Equal(result.Body, wanted.Body) {
				t.Fatalf("%v, want %v", result, wanted)
			}
		}
	})
}

// bothTake decodes a message by Codec, from pieces, and by protobuf. It reports whether both accept it.
func bothTake(t *testing.T, message []byte, pieces mem.BufferSlice, got, want proto.Message) bool {
	err, wantErr := Codec{}.Unmarshal(pieces, got), proto.Unmarshal(message, want)
	switch {
	case err != nil && wantErr == nil && !hasGroup(message):
		t.Fatalf("%v, but protobuf takes it", err)
	case err == nil && wantErr != nil:
		t.Fatalf("taken, but protobuf says %v", wantErr)
	}
	return err == nil
}

// hasGroup finds the mark of a group among a message's fields.
func hasGroup(message []byte) bool {
	for len(message) > 0 {
		_, kind, n := protowire.ConsumeField(message)
		if n < 0 || kind == protowire.StartGroupType {
			return true
		}
		message = message[n:]
	}
	return false
}

// FuzzStream reads bytes as an Arrow stream, as uploads are read: descriptions are looked over first, and what is
// allocated is bounded.
func FuzzStream(f *testing.F) {
	for _, options := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
		f.Add(stream(f, 3, options...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var messages []*flight.FlightData
		for _, m := range split(text) {
			if CheckHeader(m.DataHeader) == nil {
				messages = append(messages, m)
			}
		}
		mem := NewAllocator(1 << 20)
		r, err := flight.NewRecordReader(&replay{messages}, ipc.WithAllocator(mem))
		if err != nil {
			return
		}
		defer r.Release()
		for r.Next() {
		}
		if mem.live.Load() > 1<<20 {
			t.Errorf("%d bytes are allocated", mem.live.Load())
		}
		if refused := mem.Refused(); refused != nil && !errors.As(r.Err(), new(*TooLarge)) {
			t.Errorf("%v, but the reader says %v", refused, r.Err())
		}
	})
}
