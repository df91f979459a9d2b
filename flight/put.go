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

// DoPut receives a table and commits it when the client has ended the stream. The reply has the number of its rows.
//
// The server reads a refused upload to its end before it sends the error, because pyarrow raises the server's error
// when it closes a stream, but a less useful one when a write fails.
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

// receiveUpload stores the table of the stream completely or not at all.
func (s *service) receiveUpload(stream flight.FlightService_DoPutServer) (rows int64, err error) {
	in, err := s.openSource(stream.Context(), stream)
	if err != nil {
		return 0, err
	}
	defer in.reader.Release()
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

// drain reads and drops the rest of a client's stream, for Config.Patience at most.
func (s *Server) drain(from flight.FlightService_DoPutServer) {
	rest := receiver{from: from, call: callOf(from.Context())}
	select {
	case <-finished(func() { _ = recovered(s.log, rest.skip) }):
	case <-time.After(s.cfg.Patience): // the end of the call stops the reader
	}
}

// source reads the schema and the batches of a client's stream. Its errors are those of the contract or of the context.
type source struct {
	from   *receiver
	mem    *wire.Allocator
	reader *flight.Reader
	schema api.Schema
}

// openSource reads the schema of a stream. A message may have, or claim, at most Config.MaxMessageBytes.
func (s *service) openSource(ctx context.Context, from flight.DataStreamReader) (*source, error) {
	limit := int64(s.server.cfg.MaxMessageBytes)
	in := &source{from: &receiver{from: from, limit: limit, call: callOf(ctx)}, mem: wire.NewAllocator(limit)}
	var err error
	if in.reader, err = flight.NewRecordReader(in.from, ipc.WithAllocator(in.mem)); err != nil {
		return nil, in.explain(err)
	}
	in.schema = columns.FromArrow(in.reader.Schema())
	return in, nil
}

// receivedBatch is a batch from a client.
type receivedBatch struct {
	api.Batch
	body []byte // memory of the batch: the message's body
	call *call
}

// recycle gives back the batch's memory. A batch that is not recycled stays valid.
func (a receivedBatch) recycle() {
	a.call.release(int64(len(a.body)))
	wire.Recycle(a.body)
}

// next returns the next batch, or io.EOF if the client has ended the stream.
func (s *source) next() (receivedBatch, error) {
	if s.reader.Next() {
		batch, err := columns.Batch(s.schema, s.reader.RecordBatch())
		return receivedBatch{batch, s.from.body, s.from.call}, err
	}
	if err := s.reader.Err(); err != nil {
		return receivedBatch{}, s.explain(err)
	}
	if !s.from.ended {
		return receivedBatch{}, api.Errorf(api.BadTensor, "The stream is incomplete")
	}
	return receivedBatch{}, io.EOF
}

// explain returns why reading failed: the connection, a limit, or the contents of the stream.
func (s *source) explain(err error) error {
	var (
		invalid     *tensor.Error
		contractErr *api.Error
	)
	switch {
	case s.from.err != nil:
		return s.from.err
	case s.from.ended:
		return api.Errorf(api.BadTensor, "The stream ended before its schema").
			WithHint("Send a schema, even if no rows follow.")
	case s.mem.Refused() != nil:
		return tooLarge(s.mem.Refused().Limit)
	case errors.As(err, &invalid):
		return api.Errorf(api.BadTensor, "A tensor column is invalid: %s", invalid.Msg)
	case errors.As(err, &contractErr):
		return contractErr
	}
	return notArrow(err)
}

func notArrow(err error) error {
	return api.Errorf(api.BadTensor, "The stream is not an Arrow stream: %w", err)
}

// receiver gives the messages of a stream to arrow-go's reader. It checks their headers first, and drops messages that
// only have metadata.
type receiver struct {
	from  flight.DataStreamReader
	limit int64  // bytes of one message
	body  []byte // body of the last message
	ended bool   // the client has ended the stream
	err   error  // error of the connection, or of the first invalid message
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
			r.err = notArrow(err)
			return nil, r.err
		}
		r.body = data.GetDataBody()
		return data, nil
	}
}

// skip reads and drops the rest of the stream. It returns the error that ends the stream.
func (r *receiver) skip() error {
	for {
		data, err := r.from.Recv()
		if err != nil {
			return err
		}
		r.call.release(int64(len(data.GetDataBody())))
		wire.Recycle(data.GetDataBody())
	}
}

// transportError converts an error of gRPC's transport to one of the context or of the contract. A lost connection is a
// cancelled request.
func transportError(err error) error {
	var contractErr *api.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &contractErr):
		return contractErr
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
