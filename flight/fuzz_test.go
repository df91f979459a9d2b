package flight

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/flight/columns"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
)

// upload is the server's side of a DoPut whose client has sent these messages and ended.
type upload struct {
	grpc.ServerStream
	ctx      context.Context
	messages []*flight.FlightData
}

// Context implements grpc.ServerStream.
func (u *upload) Context() context.Context { return u.ctx }

// Send implements flight.FlightService_DoPutServer.
func (u *upload) Send(*flight.PutResult) error { return nil }

// Recv implements flight.FlightService_DoPutServer.
func (u *upload) Recv() (*flight.FlightData, error) {
	if len(u.messages) == 0 {
		return nil, io.EOF
	}
	m := u.messages[0]
	u.messages = u.messages[1:]
	return m, nil
}

// FuzzUpload sends a schema, a batch and its body to a real engine's uploads. It stores them or answers with a code of
// the contract that is not INTERNAL.
func FuzzUpload(f *testing.F) {
	seed := func(command string, s api.Schema, b api.Batch, options ...ipc.Option) {
		as, err := columns.ToArrow(s)
		if err != nil {
			f.Fatal(err)
		}
		r, err := columns.Record(as, s, b)
		if err != nil {
			f.Fatal(err)
		}
		to := &messages{}
		w := flight.NewRecordWriter(to, append(options, ipc.WithSchema(as))...)
		if err := w.Write(r); err != nil {
			f.Fatal(err)
		}
		f.Add(command, to.list[0].DataHeader, to.list[1].DataHeader, to.list[1].DataBody)
	}
	images := api.Schema{Columns: []api.Column{
		{Name: "image", Type: api.Uint8, Kind: api.Tensor, Shape: []int{2, 2, 1}, DimNames: []string{"H", "W", "C"}},
		{Name: "label", Type: api.Int32},
	}}
	two := api.Batch{Rows: 2, Cols: []any{[]uint8{1, 2, 3, 4, 5, 6, 7, 8}, []int32{0, 1}}}
	for _, options := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
		seed(`{"op":"PutDataset","name":"d","replace":true}`, images, two, options...)
	}
	images.Columns[0].Type = api.Float32
	two.Cols[0] = []float32{1, -1, 0, 0.5, 1, -1, 0, 0.5}
	seed(`{"op":"PutDataset","name":"d","replace":true}`, images, two)
	seed(`{"op":"PutSchedule","name":"s","basis":"none","replace":true}`, api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32}, {Name: "subspace", Type: api.Int32}, {Name: "t", Type: api.Float64}, {
			Name: "g",
			Type: api.Float64,
		},
	}}, api.Batch{Rows: 2, Cols: []any{[]int32{-1, -1}, []int32{0, 0}, []float64{0, 1}, []float64{1e-9, 400}}})
	seed(`{"op":"PutBasis","name":"b","replace":true}`, api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32}, {
			Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{2, 2},
			DimNames: []string{"H", "W"},
		},
	}}, api.Batch{Rows: 1, Cols: []any{[]int32{-1}, []float64{0.5, 0.5, 0.5, 0.5}}})

	log := slog.New(slog.DiscardHandler)
	e, err := engine.Open(f.Context(), engine.Config{
		Dir: f.TempDir(), MaxUploadBytes: 1 << 20, Logger: log,
		Device: devicetest.PureGo(f),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close(context.Background()) })
	s := &service{server: New(e, Config{MaxMessageBytes: 1 << 20, Logger: log})}
	f.Fuzz(func(t *testing.T, command string, schema, batch, body []byte) {
		messages := []*flight.FlightData{
			{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(command)}, DataHeader: schema},
			{DataHeader: batch, DataBody: body},
		}
		c := s.server.newCall(doPut)
		c.principal = &auth.Principal{Name: "fuzz", Scopes: api.Scopes}
		defer c.releaseAll()
		err := c.authorize(t.Context(), messages[0])
		if err == nil {
			_, err = s.receiveUpload(&upload{ctx: c.context(t.Context()), messages: messages})
		}
		if err == nil {
			return
		}
		var known *api.Error
		if !errors.As(err, &known) || known.Code == api.Internal {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
