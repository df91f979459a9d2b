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

// bufferPlaces gives where a record batch's buffers begin in its body.
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
