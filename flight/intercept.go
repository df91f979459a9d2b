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
		return toStatus(log, id, api.Errorf(api.Draining, "The server is shutting down").WithHint("Try again in a moment."))
	}
	defer s.end()
	started := time.Now()
	err := toStatus(log, id, safely(log, f))
	log.Debug("call", "code", status.Code(err), "seconds", time.Since(started).Seconds())
	return err
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
	return s.call(info.FullMethod, func() error { return handler(srv, stream) })
}
