package wire

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// pieces collects what is written to it, without copying.
type pieces [][]byte

// Write implements io.Writer, except that it keeps b.
func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, b)
	return len(b), nil
}

// message takes a payload of arrow-go apart: the description and the body, whose buffers are aligned.
func message(payload ipc.Payload) (header []byte, body pieces, err error) {
	meta := payload.Meta()
	defer meta.Release()
	if err := payload.SerializeBody(&body); err != nil {
		return nil, nil, err
	}
	header = meta.Bytes() // outlives meta: Go's memory
	body, err = spread(header, body)
	return header, body, err
}

// Stream returns records of one schema as an Arrow IPC stream, in pieces of which the largest are the records' own
// memory; see Data. The bodies begin at resultResidue mod Alignment.
func Stream(schema *arrow.Schema, records ...arrow.RecordBatch) ([][]byte, error) {
	var s streamed
	w := ipc.NewWriterWithPayloadWriter(&s, ipc.WithSchema(schema))
	for _, r := range records {
		if err := w.Write(r); err != nil {
			return nil, err
		}
	}
	return s.pieces, w.Close()
}

// streamed is an ipc.PayloadWriter that frames messages as Arrow's streaming format does.
type streamed struct {
	pieces pieces
	length int
}

const continuation = 0xffffffff // before every message and, with a length of 0, at the end

// Start implements ipc.PayloadWriter.
func (s *streamed) Start() error { return nil }

// Close implements ipc.PayloadWriter: it ends the stream.
func (s *streamed) Close() error {
	s.append(binary.LittleEndian.AppendUint64(nil, continuation))
	return nil
}

// WritePayload implements ipc.PayloadWriter.
func (s *streamed) WritePayload(payload ipc.Payload) error {
	header, body, err := message(payload)
	if err != nil {
		return err
	}
	const mark = 8 // the continuation and the length
	pad := (resultResidue - s.length - mark - len(header)) & (Alignment - 1)
	b := make([]byte, 0, mark+len(header)+pad)
	b = binary.LittleEndian.AppendUint32(b, continuation)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)+pad))
	s.append(append(append(b, header...), zeros[:pad]...))
	for _, piece := range body {
		s.append(piece)
	}
	return nil
}

func (s *streamed) append(piece []byte) {
	s.pieces = append(s.pieces, piece)
	s.length += len(piece)
}

// Sender sends messages of every kind that Codec knows: a grpc.ServerStream or grpc.ClientStream with this codec.
type Sender interface{ SendMsg(m any) error }

// Writer writes records to a stream of FlightData, from the memory in which they lie: see Data. It is for one
// goroutine.
type Writer struct {
	ipc *ipc.Writer
	out sending
}

// NewWriter returns a writer of records of the schema. descriptor, encoded, goes out with the first message; replies
// have none.
func NewWriter(to Sender, schema *arrow.Schema, descriptor []byte) *Writer {
	w := &Writer{out: sending{to: to, descriptor: descriptor}}
	w.ipc = ipc.NewWriterWithPayloadWriter(&w.out, ipc.WithSchema(schema))
	return w
}

// Write sends a record with metadata, which may be nil; before the first record, the schema.
func (w *Writer) Write(r arrow.RecordBatch, metadata []byte) error {
	w.out.metadata = metadata
	return w.ipc.Write(r)
}

// Close sends the schema if no record was written. The stream stays open.
func (w *Writer) Close() error {
	w.out.metadata = nil
	return w.ipc.Close()
}

// sending is an ipc.PayloadWriter that sends a message for each payload.
type sending struct {
	to                   Sender
	descriptor, metadata []byte
}

// Start implements ipc.PayloadWriter.
func (s *sending) Start() error { return nil }

// Close implements ipc.PayloadWriter.
func (s *sending) Close() error { return nil }

// WritePayload implements ipc.PayloadWriter.
func (s *sending) WritePayload(payload ipc.Payload) error {
	header, body, err := message(payload)
	if err != nil {
		return err
	}
	d := Data{Descriptor: s.descriptor, Header: header, AppMetadata: s.metadata, Body: body}
	s.descriptor = nil
	return s.to.SendMsg(&d)
}
