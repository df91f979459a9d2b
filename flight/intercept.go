package flight

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/anisoflight/anisoflight/flight/api"
)

const healthService = "/grpc.health.v1.Health/"

// call runs one call's handler: it refuses new calls of a draining server, gives the call an id, recovers panics, and
// turns the error into a status. Health checks are answered whatever the server does.
func (s *Server) call(method string, f func() error) error {
	if strings.HasPrefix(method, healthService) {
		return f()
	}
	id := newID()
	log := s.log.With("request", id, "method", method)
	if !s.begin() {
		return toStatus(log, id, errDraining())
	}
	defer s.end()
	started := time.Now()
	err := safely(log, f)
	if err != nil && s.cutoff.Err() != nil {
		err = errDraining()
	}
	err = toStatus(log, id, err)
	log.Debug("call", "code", status.Code(err), "seconds", time.Since(started).Seconds())
	return err
}

// errDraining is the answer to calls that a server which stops does not take, or cuts off.
func errDraining() error {
	return api.Errorf(api.Draining, "The server is shutting down").WithHint("Try again in a moment.")
}

// safely runs f; a panic is logged with its stack and becomes an error.
func safely(log *slog.Logger, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "value", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	err = s.call(info.FullMethod, func() (err error) {
		reply, err = handler(ctx, req)
		return err
	})
	return reply, err
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, cancel := earlier(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.cutoff, cancel)()
	return s.call(info.FullMethod, func() error { return handler(srv, &timed{stream, ctx}) })
}

// timed is a stream whose context ends a little before its deadline.
type timed struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (t *timed) Context() context.Context { return t.ctx }

// earlier ends a moment before ctx does by its deadline. At the deadline gRPC resets the stream, which C++ clients, pyarrow
// among them, take for a cancellation if it reaches them before their own clock strikes; a status that comes first tells
// them what happened.
func earlier(ctx context.Context) (context.Context, context.CancelFunc) {
	const moment = 25 * time.Millisecond
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(moment, time.Until(deadline)/8)))
}
