package wire

import (
	"encoding/binary"
	"errors"

	flatbuffers "github.com/google/flatbuffers/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// Alignment is the alignment in bytes that Arrow recommends for buffers.
const Alignment = 64

// dataResidue and resultResidue are the offsets of a body in its message, mod Alignment. Arrow's C++ library, and so
// pyarrow, copies a FlightData to 16 bytes after the beginning of allocated memory, and the body of a Result to its
// beginning. glibc's malloc returns 16 bytes after a page for large, mapped memory, and a multiple of 16 else. So large
// bodies are aligned to 64 bytes and small ones to 16.
const (
	dataResidue   = 32
	resultResidue = 48
)

// minCopied is the least length of a FlightData that a C++ client copies to memory of its own: more than one HTTP/2
// frame of 16 KiB, with gRPC's prefix of five bytes. A shorter one stays in the socket's buffer, at any address.
const minCopied = 16<<10 - 5 + 1

// zeros is the memory of paddings. It is never written.
var zeros [minCopied + 2*Alignment]byte

// padding returns the number of zeros to append to a field of n bytes that follows prefix bytes, so that the body after
// it is aligned and the message is at least minCopied long.
func padding(prefix, n, body int) int {
	if body == 0 {
		return 0
	}
	at := func(pad int) int { return prefix + protowire.SizeBytes(n+pad) }
	pad := max(0, minCopied-body-at(0))
	for at(pad)%Alignment != dataResidue || at(pad)+body < minCopied {
		pad++
	}
	return pad
}

// More slots and sizes of Arrow's Message.fbs; the others are next to CheckHeader.
const (
	messageBodyLength = 10
	sizeofBuffer      = 16 // two int64: offset in the body, length
)

// align moves the buffers of a record batch from multiples of 8, where arrow-go places them, to multiples of Alignment.
// It changes header, the message's flatbuffer. body has the pieces that arrow-go's Payload.SerializeBody writes: each
// buffer, and its padding if it needs one. Other messages stay as they are.
func align(header []byte, body pieces) (pieces, error) {
	message := root(header)
	batch, ok := table(message, messageHeader)
	if !ok || message.GetByteSlot(messageHeaderType, 0) != headerBatch {
		return body, nil
	}
	o := flatbuffers.UOffsetT(batch.Offset(batchBuffers))
	if o == 0 {
		return body, nil
	}
	at, end := batch.Vector(o), 0
	out := make(pieces, 0, len(body)+batch.VectorLen(o))
	for i := range batch.VectorLen(o) {
		place := header[int(at)+i*sizeofBuffer:]
		binary.LittleEndian.PutUint64(place, uint64(end))
		size := int(binary.LittleEndian.Uint64(place[8:]))
		if size == 0 {
			continue
		}
		if len(body) == 0 || len(body[0]) != size {
			return nil, errors.New("wire: a body does not match its header")
		}
		out, body = append(out, body[0]), body[1:]
		if size%8 != 0 {
			body = body[1:]
		}
		pad := -size & (Alignment - 1)
		if pad > 0 {
			out = append(out, zeros[:pad])
		}
		end += size + pad
	}
	message.MutateInt64Slot(messageBodyLength, int64(end))
	return out, nil
}
