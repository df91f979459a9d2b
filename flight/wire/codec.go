package wire

import (
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// WriteBuffer is the size of gRPC's write buffer, where sent data are copied once. gRPC's default of 32 KiB makes more
// system calls and wakes readers twice as often.
const WriteBuffer = 512 << 10

// Codec is gRPC's codec for protobuf with fewer copies of tables. It sends *Data and *Result from the memory of their
// bodies, and copies the bodies of received *flight.FlightData and *flight.Result once, to aligned memory. The bytes
// are those of protobuf, so that the other side needs no such codec.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

var protobuf = encoding.GetCodecV2(proto.Name)

// Marshal implements encoding.CodecV2.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *Data:
		return v.encode(), nil
	case *Result:
		return v.encode(), nil
	}
	return protobuf.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *flight.FlightData:
		return decodeData(data, v)
	case *flight.Result:
		return decodeResult(data, v)
	}
	return protobuf.Unmarshal(data, v)
}

// Name implements encoding.CodecV2. It is protobuf's name, because the bytes are protobuf's.
func (Codec) Name() string { return proto.Name }
