package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/anisoflight/anisoflight/flight/wire"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

// goClient is a client in Go: with package wire, or with arrow-go's reader and writer alone. Both use Flight's raw
// streams, so that they differ in nothing else: flight/client would also decode, which is measured by service.
type goClient struct {
	conn    *grpc.ClientConn
	flight  flight.FlightServiceClient
	stock   bool
	schema  *arrow.Schema
	records records
}

func newGoClient(address string, stock bool, s *arrow.Schema, p [blocks][]float32) (*goClient, error) {
	options := []grpc.CallOption{grpc.MaxCallRecvMsgSize(64 << 20), grpc.MaxCallSendMsgSize(64 << 20)}
	dial := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if !stock {
		options = append(options, grpc.ForceCodecV2(wire.Codec{}))
		dial = append(dial, grpc.WithInitialWindowSize(4<<20), grpc.WithInitialConnWindowSize(8<<20),
			grpc.WithWriteBufferSize(wire.WriteBuffer))
	}
	conn, err := grpc.NewClient(address, append(dial, grpc.WithDefaultCallOptions(options...))...)
	if err != nil {
		return nil, err
	}
	return &goClient{
		conn: conn, flight: flight.NewFlightServiceClient(conn), stock: stock, schema: s, records: newRecords(s, p),
	}, nil
}

// repeat implements flightClient.
func (c *goClient) repeat(ctx context.Context, operation string, rows, times int) (took []time.Duration, err error) {
	for range times {
		t, err := c.do(ctx, operation, rows)
		if err != nil {
			return nil, err
		}
		took = append(took, t)
	}
	return took, nil
}

// do does an operation on a number of rows and returns how long it took.
func (c *goClient) do(ctx context.Context, operation string, rows int) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	do := map[string]func(context.Context, int) (int, error){
		"get": c.get, "put": c.put, "exchange": c.exchange, "action": c.action,
	}[operation]
	started := time.Now()
	got, err := do(ctx, rows)
	if err == nil && got != rows {
		err = fmt.Errorf("%s: %d rows of %d arrived", operation, got, rows)
	}
	return time.Since(started), err
}

func (c *goClient) get(ctx context.Context, rows int) (int, error) {
	ticket, err := json.Marshal(rowsRequest{Op: getOp, Rows: rows})
	if err != nil {
		return 0, err
	}
	stream, err := c.flight.DoGet(ctx, &flight.Ticket{Ticket: ticket})
	if err != nil {
		return 0, err
	}
	return c.read(stream)
}

// read counts a stream's rows.
func (c *goClient) read(from flight.DataStreamReader) (rows int, err error) {
	recycling := &recycler{from: from}
	r, err := flight.NewRecordReader(recycling)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		rows += int(r.RecordBatch().NumRows())
	}
	return rows, r.Err()
}

// recycler releases the memory of every message when the next one is asked for.
type recycler struct {
	from flight.DataStreamReader
	body []byte
}

// Recv implements flight.DataStreamReader.
func (r *recycler) Recv() (*flight.FlightData, error) {
	wire.Recycle(r.body)
	data, err := r.from.Recv()
	r.body = data.GetDataBody()
	return data, err
}

// writer returns a function that writes the batches of a stream in turn.
func (c *goClient) writer(to grpc.ClientStream, send flight.DataStreamWriter, op string) (func(i, n int) error, error) {
	command, err := json.Marshal(rowsRequest{Op: op})
	if err != nil {
		return nil, err
	}
	descriptor := &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: command}
	if c.stock {
		w := flight.NewRecordWriter(send, ipc.WithSchema(c.schema))
		w.SetFlightDescriptor(descriptor)
		return func(i, n int) error { return w.Write(c.records.batch(i, n)) }, nil
	}
	text, err := proto.Marshal(descriptor)
	if err != nil {
		return nil, err
	}
	w := wire.NewWriter(to, c.schema, text)
	return func(i, n int) error { return w.Write(c.records.batch(i, n), nil) }, nil
}

func (c *goClient) put(ctx context.Context, rows int) (int, error) {
	stream, err := c.flight.DoPut(ctx)
	if err != nil {
		return 0, err
	}
	write, err := c.writer(stream, stream, putOp)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(forBatches(rows, write), stream.CloseSend()); err != nil {
		return 0, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return 0, err
	}
	var counted struct{ Rows int }
	err = json.Unmarshal(answer.GetAppMetadata(), &counted)
	return counted.Rows, err
}

func (c *goClient) exchange(ctx context.Context, rows int) (int, error) {
	stream, err := c.flight.DoExchange(ctx)
	if err != nil {
		return 0, err
	}
	write, err := c.writer(stream, stream, exchangeOp)
	if err != nil {
		return 0, err
	}
	wrote := make(chan error, 1)
	go func() { wrote <- errors.Join(forBatches(rows, write), stream.CloseSend()) }()
	got, err := c.read(stream)
	return got, errors.Join(err, <-wrote)
}

func (c *goClient) action(ctx context.Context, rows int) (got int, err error) {
	body, err := json.Marshal(rowsRequest{Op: getOp, Rows: rows})
	if err != nil {
		return 0, err
	}
	stream, err := c.flight.DoAction(ctx, &flight.Action{Type: getOp, Body: body})
	if err != nil {
		return 0, err
	}
	for {
		result, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		r, err := ipc.NewReader(bytes.NewReader(result.GetBody()))
		if err != nil {
			return got, err
		}
		for r.Next() {
			got += int(r.RecordBatch().NumRows())
		}
		r.Release()
		if r.Err() != nil {
			return got, r.Err()
		}
	}
}
