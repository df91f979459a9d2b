package wire

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// pieces collects the slices written to it, without copying.
type pieces [][]byte

// Write implements io.Writer, except that it keeps b.
func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, b)
	return len(b), nil
}

// message returns the header and the body of a payload, with aligned buffers.
func message(payload ipc.Payload) (header []byte, body pieces, err error) {
	meta := payload.Meta()
	defer meta.Release()
	if err := payload.SerializeBody(&body); err != nil {
		return nil, nil, err
	}
	header = meta.Bytes() // outlives meta: Go's memory
	body, err = align(header, body)
	return header, body, err
}

// Stream returns records of one schema as an Arrow IPC stream, in pieces that share the records' memory; see Data. The
// bodies begin at resultResidue mod Alignment.
func Stream(schema *arrow.Schema, records ...arrow.RecordBatch) ([][]byte, error) {
	var s streamWriter
	w := ipc.NewWriterWithPayloadWriter(&s, ipc.WithSchema(schema))
	for _, r := range records {
		if err := w.Write(r); err != nil {
			return nil, err
		}
	}
	return s.pieces, w.Close()
}

// streamWriter is an ipc.PayloadWriter that writes messages in Arrow's streaming format.
type streamWriter struct {
	pieces pieces
	length int
}

const continuation = 0xffffffff // before every message and, with a length of 0, at the end

// Start implements ipc.PayloadWriter.
func (s *streamWriter) Start() error { return nil }

// Close implements ipc.PayloadWriter. It ends the stream.
func (s *streamWriter) Close() error {
	s.append(binary.LittleEndian.AppendUint64(nil, continuation))
	return nil
}

// WritePayload implements ipc.PayloadWriter.
func (s *streamWriter) WritePayload(payload ipc.Payload) error {
	header, body, err := message(payload)
	if err != nil {
		return err
	}
	const prefix = 8 // the continuation and the length
	pad := (resultResidue - s.length - prefix - len(header)) & (Alignment - 1)
	b := make([]byte, 0, prefix+len(header)+pad)
	b = binary.LittleEndian.AppendUint32(b, continuation)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)+pad))
	s.append(append(append(b, header...), zeros[:pad]...))
	for _, piece := range body {
		s.append(piece)
	}
	return nil
}

func (s *streamWriter) append(piece []byte) {
	s.pieces = append(s.pieces, piece)
	s.length += len(piece)
}

// Sender is a grpc.ServerStream or grpc.ClientStream whose codec is Codec.
type Sender interface{ SendMsg(m any) error }

// Writer writes records to a stream of FlightData without copies; see Data. Only one goroutine may use it.
type Writer struct {
	ipc *ipc.Writer
	out dataWriter
}

// NewWriter returns a writer of records of a schema. The first message has the encoded descriptor, which is nil in
// replies.
func NewWriter(to Sender, schema *arrow.Schema, descriptor []byte) *Writer {
	w := &Writer{out: dataWriter{to: to, descriptor: descriptor}}
	w.ipc = ipc.NewWriterWithPayloadWriter(&w.out, ipc.WithSchema(schema))
	return w
}

// Write sends a record with metadata, which may be nil. Before the first record it sends the schema.
func (w *Writer) Write(r arrow.RecordBatch, metadata []byte) error {
	w.out.metadata = metadata
	return w.ipc.Write(r)
}

// Close sends the schema if no record was written. The stream stays open.
func (w *Writer) Close() error {
	w.out.metadata = nil
	return w.ipc.Close()
}

// dataWriter is an ipc.PayloadWriter that sends a FlightData for each payload.
type dataWriter struct {
	to                   Sender
	descriptor, metadata []byte
}

// Start implements ipc.PayloadWriter.
func (w *dataWriter) Start() error { return nil }

// Close implements ipc.PayloadWriter.
func (w *dataWriter) Close() error { return nil }

// WritePayload implements ipc.PayloadWriter.
func (w *dataWriter) WritePayload(payload ipc.Payload) error {
	header, body, err := message(payload)
	if err != nil {
		return err
	}
	d := Data{Descriptor: w.descriptor, Header: header, AppMetadata: w.metadata, Body: body}
	w.descriptor = nil
	return w.to.SendMsg(&d)
}
