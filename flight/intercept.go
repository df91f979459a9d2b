package flight

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

func (s *Server) newCall(ctx context.Context, method string) *call {
	id := newID()
	return &call{
		server: s, ctx: ctx, who: callerOf(ctx), method: method, id: id,
		log: s.log.With("request", id, "method", method), started: time.Now(),
	}
}

// do runs the call's handler: it refuses new calls of a draining server and those of a caller with too many, recovers
// panics, and turns the error into a status.
func (c *call) do(f func() error) error {
	err := c.server.begin(c)
	if err == nil {
		defer c.server.end(c)
		defer c.giveAll()
		if err = recovered(c.log, f); err != nil && (c.server.cutoff.Err() != nil || c.watches && c.server.draining.Load()) {
			err = errDraining()
		}
	}
	return c.finish(err)
}

// finish logs how the call ended and gives its status.
func (c *call) finish(err error) error {
	took := time.Since(c.started)
	c.server.meters.count(c, err, took)
	err = toStatus(c.log, c.id, err)
	c.log.Debug("call", "op", c.op, "caller", c.who.key, "code", status.Code(err), "seconds", took.Seconds())
	return err
}

// refuse returns the status of a call that is not let in.
func (s *Server) refuse(ctx context.Context, method string, err error) error {
	return s.newCall(ctx, method).finish(err)
}

func (s *Server) unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (reply any, err error) {
	if info.FullMethod == healthCheck {
		return handler(ctx, req)
	}
	c := s.newCall(ctx, info.FullMethod)
	err = c.do(func() (err error) {
		if err = c.authorize(req); err == nil {
			reply, err = handler(c.context(ctx), req)
		}
		return err
	})
	return reply, err
}

func (s *Server) stream(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	if info.FullMethod == healthWatch {
		return handler(srv, stream)
	}
	c := s.newCall(stream.Context(), info.FullMethod)
	ctx, cancel := earlier(c.context(stream.Context()))
	defer cancel()
	defer context.AfterFunc(s.cutoff, cancel)()
	c.cancel = cancel
	return c.do(func() error {
		from, err := transportOf(stream.Context())
		if err != nil {
			return err
		}
		return handler(srv, &guarded{ServerStream: stream, ctx: ctx, call: c, inbox: inbox{call: c, from: from}})
	})
}

// earlier ends a moment before ctx does by its deadline. At the deadline gRPC resets the stream, which C++ clients,
// pyarrow among them, take for a cancellation if it reaches them before their own clock strikes; a status that comes
// first tells them what happened.
func earlier(ctx context.Context) (context.Context, context.CancelFunc) {
	const moment = 25 * time.Millisecond
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(moment, time.Until(deadline)/8)))
}
