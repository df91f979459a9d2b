package wire

import (
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// WriteBuffer is how many bytes gRPC should gather before it hands them to the socket, which is the one copy on the way
// out. With gRPC's own 32 KiB there are more system calls, and readers wake, and switch, twice as often.
const WriteBuffer = 512 << 10

// Codec is gRPC's codec for protobuf, except that tables are not copied needlessly: *Data and *Result are sent from the
// memory that their bodies refer to, and the bodies of *flight.FlightData and *flight.Result are received by one copy,
// to aligned memory. The bytes on the wire are protobuf's; the other side need not know.
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

// Name implements encoding.CodecV2: it is the name of protobuf, so that the content type is the ordinary one.
func (Codec) Name() string { return proto.Name }
