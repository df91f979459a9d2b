package wire

import (
	"encoding/binary"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	flatbuffers "github.com/google/flatbuffers/go"
)

// replay is a stream of messages at hand.
type replay struct{ messages []*flight.FlightData }

// Recv implements flight.DataStreamReader.
func (r *replay) Recv() (*flight.FlightData, error) {
	if len(r.messages) == 0 {
		return nil, io.EOF
	}
	m := r.messages[0]
	r.messages = r.messages[1:]
	return m, nil
}

// bufferPlaces returns where a record batch's buffers begin in its body.
func bufferPlaces(header []byte) (at []int) {
	batch, ok := table(root(header), messageHeader)
	if !ok {
		return nil
	}
	o := flatbuffers.UOffsetT(batch.Offset(batchBuffers))
	start := int(batch.Vector(o))
	for i := range batch.VectorLen(o) {
		at = append(at, int(binary.LittleEndian.Uint64(header[start+i*sizeofBuffer:])))
	}
	return at
}

// split cuts an Arrow stream into the messages in which Flight sends it.
func split(stream []byte) (messages []*flight.FlightData) {
	for len(stream) >= 8 {
		n := int64(binary.LittleEndian.Uint32(stream[4:]))
		if n == 0 || n > int64(len(stream)-8) {
			return messages
		}
		m := &flight.FlightData{DataHeader: stream[8 : 8+n]}
		stream = stream[8+n:]
		body := min(max(0, bodyLength(m.DataHeader)), int64(len(stream)))
		m.DataBody, stream = stream[:body], stream[body:]
		messages = append(messages, m)
	}
	return messages
}

// bodyLength returns what a description says, 0 where it is damaged.
func bodyLength(header []byte) (n int64) {
	defer func() { _ = recover() }()
	message := root(header)
	return message.GetInt64Slot(messageBodyLength, 0)
}
