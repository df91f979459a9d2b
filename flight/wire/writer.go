package wire

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

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
