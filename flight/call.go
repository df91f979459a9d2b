package flight

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// call is an active call. It is made before the server reads the call, and is a value of the call's context.
type call struct {
	server    *Server
	principal *auth.Principal // nil if the call has no token
	caller    string          // limits and slots of the device are counted by caller
	method    string
	op        string   // name of the operation, set by authorize; empty if there is none
	request   api.Call // set by authorize
	id        string
	log       *slog.Logger
	started   time.Time
	cancel    context.CancelFunc // cancels the work; nil for calls without a stream
	stopWatch func() bool        // set by watch: no longer cancel the call when the server stops

	rows, in, out atomic.Int64 // rows sent or stored, bytes received and sent

	mu       sync.Mutex
	reserved int64 // bytes of the server's budget
	ended    bool
}

type callKey struct{}

// callOf returns the call of a context, nil if there is none.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func (s *Server) newCall(method string) *call {
	id := rand.Text()
	return &call{server: s, method: method, id: id, log: s.log.With("request", id, "method", method), started: time.Now()}
}

// context returns the context of the call's work.
func (c *call) context(ctx context.Context) context.Context {
	return context.WithValue(api.WithClient(ctx, c.caller), callKey{}, c)
}

// All callers without a token, on a server with tokens, count as one. Their calls are few, short and quick, because
// gRPC reads a whole request before the server knows whether it is for openAction.
const (
	noToken      = "no token"
	maxNoToken   = 8
	noTokenBytes = 64 << 10
	noTokenStall = 10 * time.Second
)

// enter counts an active call under a key of its caller. It returns an error, formatted with
// their number, if limit of them are active.
func (s *Server) enter(key string, limit int, format string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.active[key]; {
	case s.draining:
		return errDraining()
	case key == noToken && n >= maxNoToken:
		return api.Errorf(api.Busy, "%d calls without a token are active", n).
			WithHint("Send a token, or wait for one to end.")
	case n >= limit:
		return api.Errorf(api.Busy, format, n).WithHint("Wait for one to end.")
	}
	s.active[key]++
	s.calls.Add(1)
	return nil
}

// leave undoes enter.
func (s *Server) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[key]--; s.active[key] == 0 {
		delete(s.active, key)
	}
	s.calls.Done()
}

// watch counts a call that watches runs apart from other calls. These calls have their own limit, and a server that
// stops ends them at once.
func (c *call) watch() error {
	if err := c.server.enter(c.watchKey(), c.server.cfg.MaxCalls, "%d of your calls watch runs"); err != nil {
		return err
	}
	c.server.leave(c.caller)
	c.stopWatch = context.AfterFunc(c.server.watchers, c.cancel)
	return nil
}

func (c *call) watchKey() string { return "watching " + c.caller }

// activeCalls returns the number of active calls.
func (s *Server) activeCalls() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range s.active {
		n += calls
	}
	return n
}

// run calls the handler, unless the server is draining or the caller has too many calls. It recovers panics and returns
// a status.
func (c *call) run(handler func() error) error {
	s := c.server
	err := s.enter(c.caller, s.cfg.MaxCalls, "%d of your calls are active")
	if err == nil {
		err = recovered(c.log, handler)
		if c.stopWatch != nil {
			c.stopWatch()
			s.leave(c.watchKey())
		} else {
			s.leave(c.caller)
		}
		c.releaseAll()
		if err != nil && (s.cutoff.Err() != nil || c.stopWatch != nil && s.watchers.Err() != nil) {
			err = errDraining()
		}
	}
	return c.finish(err)
}

// finish counts and logs the end of the call and returns its status.
func (c *call) finish(err error) error {
	took := time.Since(c.started)
	c.server.meters.count(c, err, took)
	err = toStatus(c.log, c.id, err)
	c.log.Debug("call", "op", c.op, "caller", c.caller, "code", status.Code(err), "seconds", took.Seconds())
	return err
}

// toStatus returns the gRPC status of an error, with the text "[CODE] sentence. hint". An error that is not one of the
// contract is logged and becomes INTERNAL, with only the id of the request.
func toStatus(log *slog.Logger, id string, err error) error {
	if err == nil {
		return nil
	}
	e := api.ErrorOf(err)
	code := e.Code.Status()
	if code == codes.Internal {
		log.Error("request failed", "error", err)
		return status.Errorf(codes.Internal, "[%s] request %s", api.Internal, id)
	}
	return status.Error(code, e.Error())
}

func (s *Server) unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (reply any, err error) {
	if info.FullMethod == healthCheck {
		return handler(ctx, req)
	}
	c := callOf(ctx)
	err = c.run(func() (err error) {
		if err = c.authorize(ctx, req); err == nil {
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
	c := callOf(stream.Context())
	ctx, cancel := earlier(c.context(stream.Context()))
	defer cancel()
	defer context.AfterFunc(s.cutoff, cancel)()
	c.cancel = cancel
	guarded := &guardedStream{ServerStream: stream, ctx: ctx, call: c, stalled: make(chan error, 1)}
	return c.run(func() error {
		ended := make(chan error, 1)
		s.works.Go(func() { ended <- recovered(c.log, func() error { return handler(srv, guarded) }) })
		select {
		case err := <-ended:
			return err
		case err := <-guarded.stalled: // the end of the call makes gRPC end what the handler waits for
			return err
		}
	})
}

// earlier returns a context that ends slightly before the deadline of ctx. At the deadline gRPC resets the stream. A
// C++ client, such as pyarrow, reports CANCELLED if the reset arrives before its own deadline; so the status must
// arrive first.
func earlier(ctx context.Context) (context.Context, context.CancelFunc) {
	const margin = 25 * time.Millisecond
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(margin, time.Until(deadline)/8)))
}

// guardedStream is a call's stream. It authorizes the first message before the handler sees it, reserves the bytes of
// all messages in the server's budget, and ends the call of a client that stalls for Config.Stall.
type guardedStream struct {
	grpc.ServerStream
	ctx     context.Context
	call    *call
	stalled chan error
	started bool // the first message has been read
}

// Context implements grpc.ServerStream. The context ends slightly before its deadline.
func (g *guardedStream) Context() context.Context { return g.ctx }

// SendMsg implements grpc.ServerStream. It blocks while the client's window is full.
func (g *guardedStream) SendMsg(m any) error {
	defer g.stallTimer("received").Stop()
	return g.ServerStream.SendMsg(m)
}

// RecvMsg implements grpc.ServerStream. Between two batches of an exchange a client may be silent for any time.
func (g *guardedStream) RecvMsg(m any) error {
	if !g.started || g.call.method != doExchange {
		defer g.stallTimer("sent").Stop()
	}
	err := g.ServerStream.RecvMsg(m)
	if g.started {
		if err != nil {
			return err
		}
		return g.call.reserveBytes(g.ctx, int64(proto.Size(m.(proto.Message))))
	}
	g.started = true
	switch {
	case err == nil:
		return g.call.authorize(g.ctx, m)
	case errors.Is(err, io.EOF): // the reader of the stream explains it
		return err
	case status.Code(err) == codes.Internal: // gRPC's error if the client ends a call without its one message
		return api.Errorf(api.BadRequest, "The call ended before its request")
	}
	return transportError(err)
}

// stallTimer returns a timer that ends the call of a client which has not sent, or not received, anything.
func (g *guardedStream) stallTimer(action string) *time.Timer {
	stall := g.call.server.cfg.Stall
	if g.call.principal == nil {
		stall = min(stall, noTokenStall)
	}
	return time.AfterFunc(stall, func() {
		err := api.Errorf(api.Cancelled, "The client has %s nothing for %s", action, stall).
			WithHint("Read a stream to its end, or cancel it.")
		select {
		case g.stalled <- err:
		default:
		}
	})
}

// reserveBytes reserves bytes of the server's budget for the call. It waits for free bytes, for Config.Patience at
// most.
func (c *call) reserveBytes(ctx context.Context, bytes int64) error {
	s := c.server
	bytes = min(bytes, s.cfg.MaxReceivedBytes)
	wait, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	if err := s.budget.Acquire(wait, bytes); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return api.Errorf(api.Busy, "Messages in use fill the server's limit of %d bytes", s.cfg.MaxReceivedBytes).
			WithHint("Try again in a moment.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		s.budget.Release(bytes)
		return context.Canceled
	}
	c.reserved += bytes
	return nil
}

// release releases bytes that the call no longer needs.
func (c *call) release(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = min(bytes, c.reserved)
	c.reserved -= bytes
	c.server.budget.Release(bytes)
}

// releaseAll releases all bytes of a call that has ended.
func (c *call) releaseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.server.budget.Release(c.reserved)
	c.reserved = 0
}

// errDraining is the error of calls that a stopping server refuses or ends.
func errDraining() error {
	return api.Errorf(api.Draining, "The server is shutting down").WithHint("Try again in a moment.")
}

// recovered calls f. It logs a panic with its stack and returns it as an error.
func recovered(log *slog.Logger, f func() error) error {
	err := safely.Do(f)
	if p, ok := err.(*safely.Panic); ok { //nolint:errorlint // a wrapped panic was logged already
		log.Error("panic", "value", fmt.Sprint(p.Value), "stack", string(p.Stack))
		return errors.New(p.Error())
	}
	return err
}
