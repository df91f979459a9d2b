package wire

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/apache/arrow-go/v18/arrow/flight"
)

// Codec is gRPC's codec for protobuf, except that tables are not copied needlessly: *Data and *Result are sent from the
// memory that their bodies refer to, and the body of a *flight.FlightData is received by one copy, to aligned memory. The
// bytes on the wire are protobuf's; the other side need not know.
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
	if d, ok := v.(*flight.FlightData); ok {
		return decode(data, d)
	}
	return protobuf.Unmarshal(data, v)
}

// Name implements encoding.CodecV2: it is the name of protobuf, so that the content type is the ordinary one.
func (Codec) Name() string { return proto.Name }
