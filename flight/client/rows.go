package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// Message is one message of a reply: rows, which may be none, and metadata. The batch stays valid.
type Message struct {
	Schema api.Schema
	Batch  api.Batch
	Meta   api.Meta // its "event" is start, progress, compiling, batch or end
}

// Rows iterates over the messages of a reply. The last message has the event end, or else there is an error. Each loop
// makes a call of its own when it begins, and cancels the call when it is left.
type Rows = iter.Seq2[Message, error]

// Input has batches of one schema to send.
type Input struct {
	Schema  api.Schema
	Batches iter.Seq[api.Batch]
}

// ReadAll returns all rows of a reply as one batch, and the last message's metadata.
func ReadAll(rows Rows) (api.Schema, api.Batch, api.Meta, error) {
	var all Message
	for m, err := range rows {
		if err != nil {
			return all.Schema, all.Batch, nil, err
		}
		if all.Batch.Cols == nil {
			all.Schema, all.Batch = m.Schema, columns.Empty(m.Schema)
		}
		columns.Append(&all.Batch, m.Batch)
		all.Meta = m.Meta
	}
	return all.Schema, all.Batch, all.Meta, nil
}

// Get calls the operation called op, which returns rows, by DoGet. The request is a struct of flight/api, a map or
// JSON.
func (c *Client) Get(ctx context.Context, op string, req any) Rows {
	return func(yield func(Message, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ticket, err := encode(req, "op", op)
		if err == nil {
			var stream flight.FlightService_DoGetClient
			if stream, err = c.service.DoGet(ctx, &flight.Ticket{Ticket: ticket}); err == nil {
				receive(ctx, stream, yield)
				return
			}
		}
		yield(Message{}, explain(ctx, err))
	}
}

// exchange calls an operation by DoExchange. A goroutine sends while the loop receives.
func (c *Client) exchange(ctx context.Context, op string, req any, in Input) Rows {
	return func(yield func(Message, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		sent := make(chan struct{})
		defer func() {
			cancel(nil)
			<-sent
		}()
		stream, err := c.service.DoExchange(ctx)
		if err != nil {
			close(sent)
			yield(Message{}, explain(ctx, err))
			return
		}
		go func() {
			defer close(sent)
			// io.EOF: the server has ended the stream, and the receiver gets its error.
			if err := send(stream, op, req, in); err != nil && !errors.Is(err, io.EOF) {
				cancel(err)
			}
		}()
		receive(ctx, stream, func(m Message, err error) bool {
			if cause := context.Cause(ctx); err != nil && cause != nil {
				err = cause
			}
			return yield(m, err)
		})
	}
}

// Put uploads rows to the operation called op by DoPut. The request is as in [Client.Get]. It returns the number of
// rows that the server has stored.
func (c *Client) Put(ctx context.Context, op string, req any, in Input) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.service.DoPut(ctx)
	if err != nil {
		return 0, explain(ctx, err)
	}
	if err := send(stream, op, req, in); err != nil && !errors.Is(err, io.EOF) {
		return 0, explain(ctx, err)
	}
	result, err := stream.Recv()
	if err != nil {
		return 0, explain(ctx, err)
	}
	var reply struct {
		Rows int64 `json:"rows"`
	}
	err = json.Unmarshal(result.GetAppMetadata(), &reply)
	return reply.Rows, err
}

// sender is the sending half of a stream.
type sender interface {
	wire.Sender
	CloseSend() error
}

// send sends a descriptor with the request, then the batches, and ends the stream. Its error is io.EOF if the server
// has ended the stream.
func send(to sender, op string, req any, in Input) error {
	text, err := encode(req, "op", op)
	if err != nil {
		return err
	}
	descriptor, err := proto.Marshal(&flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: text})
	if err != nil {
		return err
	}
	schema, err := columns.ToArrow(in.Schema)
	if err != nil {
		return err
	}
	w := wire.NewWriter(to, schema, descriptor)
	for batch := range in.Batches {
		r, err := columns.Record(schema, in.Schema, batch)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		if err := w.Write(r, nil); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return to.CloseSend()
}

// receive calls yield with the messages of a stream, and with an error if the last one does not have the event end.
func receive(ctx context.Context, from flight.DataStreamReader, yield func(Message, error) bool) {
	reader, err := flight.NewRecordReader(from)
	if err != nil {
		yield(Message{}, explain(ctx, err))
		return
	}
	defer reader.Release()
	m := Message{Schema: columns.FromArrow(reader.Schema())}
	for reader.Next() {
		m.Meta = nil
		if text := reader.LatestAppMetadata(); len(text) > 0 {
			err = json.Unmarshal(text, &m.Meta)
		}
		if err == nil {
			m.Batch, err = columns.Batch(m.Schema, reader.RecordBatch())
		}
		if !yield(m, err) || err != nil {
			return
		}
	}
	if err = reader.Err(); err == nil && m.Meta["event"] != "end" {
		err = errors.New("client: the reply is incomplete")
	}
	if err != nil {
		yield(Message{}, explain(ctx, err))
	}
}

// explain converts an error of gRPC to the server's *api.Error or to the error of the context.
func explain(ctx context.Context, err error) error {
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return err
	}
	if e, ok := api.ParseError(s.GRPCStatus().Message()); ok {
		return e
	}
	switch code := s.GRPCStatus().Code(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case code == codes.Canceled:
		return context.Canceled
	case code == codes.ResourceExhausted: // gRPC refuses a message
		return api.Errorf(api.TooLarge, "A message is too large: %w", err).WithHint("Send smaller batches.")
	case code == codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return fmt.Errorf("client: %w", err)
}
