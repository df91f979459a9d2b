package flight

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
	"github.com/anisoflight/anisoflight/flight/tensor"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// DoPut receives a table. It is committed once the client has ended the stream, and the reply tells its rows.
//
// An upload that is refused is read to its end before the client is told: pyarrow raises a server's error when it
// closes a stream, and something that says less when a write to it fails.
func (s *service) DoPut(stream flight.FlightService_DoPutServer) error {
	var rows int64
	err := recovered(s.server.log, func() (err error) {
		rows, err = s.receiveUpload(stream)
		return err
	})
	if err != nil {
		s.server.drain(stream)
		return err
	}
	text, err := json.Marshal(map[string]int64{"rows": rows})
	if err != nil {
		return err
	}
	return transportError(stream.Send(&flight.PutResult{AppMetadata: text}))
}

// receiveUpload stores the table that the stream brings, whole or not at all.
func (s *service) receiveUpload(stream flight.FlightService_DoPutServer) (rows int64, err error) {
	in, err := s.openSource(stream.Context(), stream)
	defer in.close()
	if err != nil {
		return 0, err
	}
	upload, err := s.server.engine.Put(stream.Context(), callOf(stream.Context()).request, in.schema)
	if err != nil {
		return 0, err
	}
	committed := false
	defer func() {
		if !committed { // also after a panic
			upload.Abort()
		}
	}()
	for {
		batch, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && batch.Rows > 0 {
			err = upload.Write(batch.Batch)
		}
		if err != nil {
			return 0, err
		}
		batch.recycle()
	}
	if err := stream.Context().Err(); err != nil {
		return 0, err
	}
	rows, err = upload.Commit()
	callOf(stream.Context()).rows.Add(rows)
	committed = err == nil
	return rows, err
}

// drain reads and forgets what a client still sends, until it ends, goes away, or patience does.
func (s *Server) drain(from flight.FlightService_DoPutServer) {
	rest := receiver{from: from, call: callOf(from.Context())}
	skip := func() error { rest.skip(); return nil }
	select {
	case <-finished(func() { _ = recovered(s.log, skip) }):
	case <-time.After(s.cfg.Patience): // the call's end stops the reading
	}
}

// source reads what a client streams: a schema and batches until the client ends the stream. Every error is
// one of the contract or of the context.
type source struct {
	from   *receiver
	mem    *wire.Allocator
	reader *flight.Reader
	schema api.Schema
}

// openSource reads up to the schema. No message may have, or claim, more bytes than Config.MaxMessageBytes.
func (s *service) openSource(ctx context.Context, from flight.DataStreamReader) (*source, error) {
	limit := int64(s.server.cfg.MaxMessageBytes)
	in := &source{from: &receiver{from: from, limit: limit, call: callOf(ctx)}, mem: wire.NewAllocator(limit)}
	var err error
	if in.reader, err = flight.NewRecordReader(in.from, ipc.WithAllocator(in.mem)); err != nil {
		return in, in.explain(err)
	}
	in.schema = columns.FromArrow(in.reader.Schema())
	return in, nil
}

// receivedBatch is a batch that a client sent.
type receivedBatch struct {
	api.Batch
	body []byte // the message's, in which the batch lies
	call *call
}

// recycle returns the batch's memory. A batch that is not recycled stays valid.
func (a receivedBatch) recycle() {
	a.call.release(int64(len(a.body)))
	wire.Recycle(a.body)
}

// next returns the next batch; io.EOF once the client has ended the stream.
func (s *source) next() (receivedBatch, error) {
	if s.reader.Next() {
		batch, err := columns.Batch(s.schema, s.reader.RecordBatch())
		return receivedBatch{batch, s.from.body, s.from.call}, err
	}
	if err := s.reader.Err(); err != nil {
		return receivedBatch{}, s.explain(err)
	}
	if !s.from.ended {
		return receivedBatch{}, api.Errorf(api.BadTensor, "The stream breaks off")
	}
	return receivedBatch{}, io.EOF
}

func (s *source) close() {
	if s.reader != nil {
		s.reader.Release()
	}
}

// explain finds the reason why reading failed: the connection, a limit, or what was sent.
func (s *source) explain(err error) error {
	var (
		kind  *tensor.Error
		known *api.Error
	)
	switch {
	case s.from.err != nil:
		return s.from.err
	case s.from.ended:
		return api.Errorf(api.BadTensor, "The stream ended before its schema").
			WithHint("Send a schema, even if no rows follow.")
	case s.mem.Refused() != nil:
		return tooLarge(s.mem.Refused().Limit)
	case errors.As(err, &kind):
		return api.Errorf(api.BadTensor, "A tensor column is refused: %s", kind.Msg)
	case errors.As(err, &known):
		return known
	}
	return api.Errorf(api.BadTensor, "The stream is not Arrow's: %w", err)
}

// receiver hands the messages of a stream to arrow-go's reader. It looks over their descriptions first, and leaves out
// those that carry metadata alone.
type receiver struct {
	from  flight.DataStreamReader
	limit int64  // bytes of one message
	body  []byte // the latest message's
	ended bool   // by the client, cleanly
	err   error  // the connection's, or the first message's that was refused
	call  *call
}

// Recv implements flight.DataStreamReader.
func (r *receiver) Recv() (*flight.FlightData, error) {
	for {
		data, err := r.from.Recv()
		if errors.Is(err, io.EOF) {
			r.ended = true
			return nil, io.EOF
		}
		if err != nil {
			r.err = transportError(err)
			return nil, r.err
		}
		if len(data.GetDataHeader()) == 0 {
			r.call.release(int64(len(data.GetDataBody())))
			continue
		}
		if n := int64(len(data.GetDataBody())); n > r.limit {
			r.err = tooLarge(r.limit)
			return nil, r.err
		}
		if err := wire.CheckHeader(data.GetDataHeader()); err != nil {
			r.err = api.Errorf(api.BadTensor, "The stream is not Arrow's: %w", err)
			return nil, r.err
		}
		r.body = data.GetDataBody()
		return data, nil
	}
}

// skip reads and forgets everything up to the end of the stream.
func (r *receiver) skip() {
	for {
		data, err := r.from.Recv()
		if err != nil {
			return
		}
		r.call.release(int64(len(data.GetDataBody())))
		wire.Recycle(data.GetDataBody())
	}
}

// transportError makes an error of gRPC's transport, if it is one, an error of the context or of the contract: a
// connection that is gone is a cancelled request.
func transportError(err error) error {
	var known *api.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &known):
		return known
	}
	switch status.Code(err) {
	case codes.Canceled, codes.Unavailable:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.ResourceExhausted:
		return api.Errorf(api.TooLarge, "A message is too large: %w", err).WithHint("Send smaller batches.")
	}
	return err
}

func tooLarge(limit int64) error {
	return api.Errorf(api.TooLarge, "A batch holds more than %d bytes", limit).WithHint("Send smaller batches.")
}
