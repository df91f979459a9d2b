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

// Message is one message of a reply: some rows, or none, and what the server says about them. The batch stays valid.
type Message struct {
	Schema api.Schema
	Batch  api.Batch
	Meta   api.Meta // its "event" is start, progress, batch or end
}

// Rows is a reply's messages, the last of which says that all went well; an error ends it. The call is made when a loop
// over it begins, anew for each, and cancelled when the loop is left.
type Rows = iter.Seq2[Message, error]

// Input is batches of one schema, to be sent.
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

// Get calls an operation that returns rows, by its name: a DoGet. The methods of the operations' own names have typed
// requests; here the request may also be a map or JSON, as programs have it whose requests are data.
func (c *Client) Get(ctx context.Context, op string, req any) Rows {
	return func(yield func(Message, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ticket, err := encode(op, req)
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

// exchange is a DoExchange: a goroutine sends while the loop receives.
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
			// What the server refuses is told to the receiver.
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

// Put uploads rows to an operation by its name, with a request as [Client.Get] takes it: a DoPut. It returns the number
// of rows that the server has stored.
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

// send sends the batches, after a descriptor that carries the request, and ends the stream. Its error is io.EOF if the
// server has ended it.
func send(to sender, op string, req any, in Input) error {
	text, err := encode(op, req)
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

// receive hands the messages of a stream to yield until one says that all went well.
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
		err = errors.New("client: the reply breaks off")
	}
	if err != nil {
		yield(Message{}, explain(ctx, err))
	}
}

// explain makes an error of gRPC an *api.Error, if it is one of the server's, or the context's own error.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
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
	case code == codes.ResourceExhausted: // gRPC's own refusal of a message
		return api.Errorf(api.TooLarge, "A message is too large: %w", err).WithHint("Send smaller batches.")
	case code == codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return fmt.Errorf("client: %w", err)
}
