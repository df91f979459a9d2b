package wire

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of the messages that carry tables, in Flight.proto.
const (
	dataDescriptor  = 1 // of FlightData
	dataHeader      = 2
	dataAppMetadata = 3
	dataBody        = 1000

	resultBody = 1 // of Result
)

// Data is a message FlightData to be sent. Its body is referenced, not copied: the pieces must not change before they
// have been sent, which is some time after SendMsg has returned, and must be memory of Go, which the collector keeps
// that long.
type Data struct {
	Descriptor  []byte   // a FlightDescriptor, encoded; only the first message of an upload has one
	Header      []byte   // the flatbuffer that describes the body
	AppMetadata []byte   // may be nil
	Body        [][]byte // the body in pieces
}

// encode returns the message in protobuf. The header is padded so that the body is aligned.
func (d *Data) encode() mem.BufferSlice {
	var front, back []byte // what precedes the padding, and what follows it
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

// Result is a message Result to be sent, whose body is referenced as that of Data is.
type Result struct{ Body [][]byte }

func (r *Result) encode() mem.BufferSlice {
	b := protowire.AppendTag(nil, resultBody, protowire.BytesType)
	return buffers(r.Body, protowire.AppendVarint(b, uint64(length(r.Body))))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// buffers returns a message that is sent from where its parts lie.
func buffers(body [][]byte, prefix ...[]byte) mem.BufferSlice {
	out := make(mem.BufferSlice, 0, len(prefix)+len(body))
	for _, parts := range [][][]byte{prefix, body} {
		for _, part := range parts {
			if len(part) > 0 {
				out = append(out, mem.SliceBuffer(part))
			}
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
