package wire

import (
	"encoding/binary"
	"errors"

	flatbuffers "github.com/google/flatbuffers/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// Alignment is what Arrow recommends for its buffers: they begin at multiples of it, which vector instructions like and
// numpy calls aligned.
const Alignment = 64

// Where bodies begin, mod Alignment, counted from the message's first byte. Clients of Arrow's C++ library, pyarrow
// among them, gather a FlightData into memory that begins 16 bytes behind what malloc gives, and a Result's body into
// memory that malloc gives. glibc's malloc gives 16 bytes behind a page for what it maps, large and long-lived memory,
// and a multiple of 16 for the rest, so the first is aligned to 64 and the rest to 16.
const (
	dataResidue   = 32
	resultResidue = 48
)

// gathered is the least length of a FlightData that a C++ client gathers into memory of its own: it travels in more
// than one HTTP/2 frame of 16 KiB, behind gRPC's five bytes. A shorter one stays where the socket left it, at any odd
// address.
const gathered = 16<<10 - 5 + 1

// zeros is what padding is made of; nobody writes to it.
var zeros [gathered + 2*Alignment]byte

// padding returns how many zeros to put behind a field of n bytes, so that what follows prefix bytes and the field is
// aligned and the message, with so many bytes of body, is gathered.
func padding(prefix, n, body int) int {
	if body == 0 {
		return 0
	}
	at := func(pad int) int { return prefix + protowire.SizeBytes(n+pad) }
	pad := max(0, gathered-body-at(0))
	for at(pad)%Alignment != dataResidue || at(pad)+body < gathered {
		pad++
	}
	return pad
}

// The places of what spread reads and changes, in Arrow's Message.fbs; the rest is beside CheckHeader.
const (
	messageBodyLength = 10
	sizeofBuffer      = 16 // a struct of two int64: where it begins in the body, its length
)

// spread moves the buffers of a record batch to multiples of Alignment: arrow-go puts them to multiples of 8. header is
// the message's description, which is changed; body is what arrow-go's Payload.SerializeBody writes, one piece a buffer
// and one for its padding. A description of anything else stays as it is.
func spread(header []byte, body pieces) (pieces, error) {
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
			return nil, errors.New("wire: a body is not as its description says")
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
