package release

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
)

// exchange is one call of a session: its method, and the messages of both sides in protobuf.
type exchange struct {
	Method   string
	Requests [][]byte
	Replies  [][]byte
	Error    string // of the call; empty if it succeeded
}

// messages is a codec that leaves every message as its bytes.
type messages struct{}

func (messages) Name() string { return "proto" }

func (messages) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (messages) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var bothWays = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// serve starts a server on a data folder and returns its address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	e, err := engine.Open(t.Context(), engine.Config{
		Dir: dir, Version: "release", Device: devicetest.PureGo(t), Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, l := flight.New(e, flight.Config{Logger: log}), listen(t)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(messages{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// send makes a call of a session again and returns what it gives now.
func send(ctx context.Context, conn *grpc.ClientConn, kept exchange) (exchange, error) {
	now := exchange{Method: kept.Method, Requests: kept.Requests}
	stream, err := conn.NewStream(ctx, &bothWays, kept.Method)
	if err != nil {
		return now, err
	}
	for _, request := range kept.Requests {
		if err := stream.SendMsg(&request); err != nil && !errors.Is(err, io.EOF) {
			return now, err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return now, err
	}
	for {
		var reply []byte
		switch err := stream.RecvMsg(&reply); {
		case errors.Is(err, io.EOF):
			return now, nil
		case err != nil:
			now.Error = status.Convert(err).Message()
			return now, nil
		}
		now.Replies = append(now.Replies, reply)
	}
}

// recorder passes calls on to a server and keeps them, in the order in which they end.
type recorder struct {
	mu   sync.Mutex
	kept []exchange
}

// start returns the address of a recorder before the server at conn.
func (r *recorder) start(t *testing.T, conn *grpc.ClientConn) string {
	t.Helper()
	s := grpc.NewServer(grpc.ForceServerCodecV2(messages{}), grpc.UnknownServiceHandler(
		func(_ any, caller grpc.ServerStream) error { return r.pass(caller, conn) }))
	l := listen(t)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func (r *recorder) pass(caller grpc.ServerStream, conn *grpc.ClientConn) error {
	method, _ := grpc.MethodFromServerStream(caller)
	call := exchange{Method: method}
	stream, err := conn.NewStream(context.WithoutCancel(caller.Context()), &bothWays, method)
	if err != nil {
		return err
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for {
			var request []byte
			if err := caller.RecvMsg(&request); err != nil {
				_ = stream.CloseSend()
				return
			}
			call.Requests = append(call.Requests, request)
			_ = stream.SendMsg(&request) // what the server refuses, its reply tells
		}
	}()
	for {
		var reply []byte
		err = stream.RecvMsg(&reply)
		if err != nil {
			break
		}
		call.Replies = append(call.Replies, reply)
		_ = caller.SendMsg(&reply) // a caller leaves when it has what it wants
	}
	<-sent
	if errors.Is(err, io.EOF) {
		err = nil
	}
	call.Error = status.Convert(err).Message()
	r.mu.Lock()
	r.kept = append(r.kept, call)
	r.mu.Unlock()
	return err
}
