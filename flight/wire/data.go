package wire

import (
	"slices"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages with tables, in Flight.proto.
const (
	dataDescriptor  = 1 // of FlightData
	dataHeader      = 2
	dataAppMetadata = 3
	dataBody        = 1000

	resultBody = 1 // of Result
)

// Data is a FlightData to send. Its body is not copied: the pieces must be Go memory, and must not change until they
// are sent, which is some time after SendMsg has returned.
type Data struct {
	Descriptor  []byte   // an encoded FlightDescriptor; only in the first message of an upload
	Header      []byte   // the flatbuffer that describes the body
	AppMetadata []byte   // may be nil
	Body        [][]byte // the body in pieces
}

// encode returns the message as protobuf. The header is padded so that the body is aligned.
func (d *Data) encode() mem.BufferSlice {
	var front, back []byte // bytes before the padding, and after it
	if len(d.Descriptor) > 0 {
		front = appendBytes(front, dataDescriptor, d.Descriptor)
	}
	if len(d.AppMetadata) > 0 {
		back = appendBytes(back, dataAppMetadata, d.AppMetadata)
	}
	n := length(d.Body)
	back = protowire.AppendVarint(protowire.AppendTag(back, dataBody, protowire.BytesType), uint64(n))
	front = protowire.AppendTag(front, dataHeader, protowire.BytesType)
	pad := padding(len(front)+len(back), len(d.Header), n)
	front = append(protowire.AppendVarint(front, uint64(len(d.Header)+pad)), d.Header...)
	return buffers(d.Body, front, zeros[:pad], back)
}

// Result is a Result to send. Its body is not copied, like that of Data.
type Result struct{ Body [][]byte }

func (r *Result) encode() mem.BufferSlice {
	b := protowire.AppendTag(nil, resultBody, protowire.BytesType)
	return buffers(r.Body, protowire.AppendVarint(b, uint64(length(r.Body))))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// buffers returns a message of prefix and body, without copies.
func buffers(body [][]byte, prefix ...[]byte) mem.BufferSlice {
	out := make(mem.BufferSlice, 0, len(prefix)+len(body))
	for _, part := range slices.Concat(prefix, body) {
		if len(part) > 0 {
			out = append(out, mem.SliceBuffer(part))
		}
	}
	return out
}

func length(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}
