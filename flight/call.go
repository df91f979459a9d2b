package flight

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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

// call is one call under way. It is made before anything of the call is read, and travels in its context.
type call struct {
	server    *Server
	principal *auth.Principal // nil if the call came without a token
	caller    string          // whom limits and slots of the device are counted for
	method    string
	op        string   // the operation's name, once the request has been read; empty if it has none
	request   api.Call // once its caller is known to be allowed it
	id        string
	log       *slog.Logger
	started   time.Time
	cancel    context.CancelFunc // of its work; nil for calls without a stream
	watching  func() bool        // for a call that watches: ends what would cut it off with the others that do

	rows, in, out atomic.Int64 // rows of tables either way, bytes of messages received and sent

	mu    sync.Mutex
	held  int64 // bytes of the server's budget
	ended bool
}

type callKey struct{}

// callOf returns the call of a context that newCall made.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func (s *Server) newCall(method string) *call {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	id := hex.EncodeToString(b[:])
	return &call{server: s, method: method, id: id, log: s.log.With("request", id, "method", method), started: time.Now()}
}

// context returns a context of the call's work.
func (c *call) context(ctx context.Context) context.Context {
	return context.WithValue(api.WithClient(ctx, c.caller), callKey{}, c)
}

// Callers without a token, on a server with tokens, are counted as one. They have a few calls, short requests and
// little time, because gRPC reads the whole of a request before anybody knows whether it is one for openAction.
const (
	noToken      = "no token"
	maxNoToken   = 8
	noTokenBytes = 64 << 10
	noTokenStall = 10 * time.Second
)

// enter counts a call in under a key of its caller.
func (s *Server) enter(key string, most int, what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.active[key]; {
	case s.draining:
		return errDraining()
	case key == noToken && n >= maxNoToken:
		return api.Errorf(api.Busy, "%d calls without a token are under way", n).
			WithHint("Send a token, or wait for one to end.")
	case n >= most:
		return api.Errorf(api.Busy, what, n).WithHint("Wait for one to end.")
	}
	s.active[key]++
	s.calls.Add(1)
	return nil
}

func (s *Server) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[key]--; s.active[key] == 0 {
		delete(s.active, key)
	}
	s.calls.Done()
}

// watch counts a call among those that watch what others do, from when it is known to be one. They have a limit of
// their own, and a server that stops cuts them off at once.
func (c *call) watch() error {
	if err := c.server.enter(c.watchKey(), c.server.cfg.MaxCalls, "%d of your calls watch runs"); err != nil {
		return err
	}
	c.server.leave(c.caller)
	c.watching = context.AfterFunc(c.server.watchers, c.cancel)
	return nil
}

func (c *call) watchKey() string { return "watching " + c.caller }

// underWay returns the number of calls under way.
func (s *Server) underWay() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range s.active {
		n += calls
	}
	return n
}

// run runs the call's handler. It refuses new calls of a draining server and those of a caller with too many, recovers
// panics, and turns the error into a status.
func (c *call) run(handler func() error) error {
	s := c.server
	err := s.enter(c.caller, s.cfg.MaxCalls, "%d of your calls are under way")
	if err == nil {
		err = recovered(c.log, handler)
		if c.watching != nil {
			c.watching()
			s.leave(c.watchKey())
		} else {
			s.leave(c.caller)
		}
		c.releaseAll()
		if err != nil && (s.cutoff.Err() != nil || c.watching != nil && s.watchers.Err() != nil) {
			err = errDraining()
		}
	}
	return c.finish(err)
}

// finish logs how the call ended and returns its status.
func (c *call) finish(err error) error {
	took := time.Since(c.started)
	c.server.meters.count(c, err, took)
	err = toStatus(c.log, c.id, err)
	c.log.Debug("call", "op", c.op, "caller", c.caller, "code", status.Code(err), "seconds", took.Seconds())
	return err
}

// toStatus makes the gRPC status of an error: its code and its text, "[CODE] sentence. hint". What the contract does
// not know becomes INTERNAL with the request's id and nothing else, and is logged in full.
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

// guardedStream is a call's stream. Its first message is checked before the handler sees it, the bytes of all are taken
// from the server's budget, and a client that neither takes nor sends anything for as long as Config.Stall is given up.
type guardedStream struct {
	grpc.ServerStream
	ctx     context.Context
	call    *call
	stalled chan error
	begun   bool // the first message has been read
}

// Context implements grpc.ServerStream. The context ends a little before its deadline.
func (g *guardedStream) Context() context.Context { return g.ctx }

// SendMsg implements grpc.ServerStream. It blocks while the client's window is full.
func (g *guardedStream) SendMsg(m any) error {
	defer g.watchFor("taken").Stop()
	return g.ServerStream.SendMsg(m)
}

// RecvMsg implements grpc.ServerStream. A client that has begun an exchange may be silent for as long as it likes.
func (g *guardedStream) RecvMsg(m any) error {
	if !g.begun || g.call.method != doExchange {
		defer g.watchFor("sent").Stop()
	}
	err := g.ServerStream.RecvMsg(m)
	if g.begun {
		if err != nil {
			return err
		}
		return g.call.reserveBytes(g.ctx, int64(proto.Size(m.(proto.Message))))
	}
	g.begun = true
	switch {
	case err == nil:
		return g.call.authorize(g.ctx, m)
	case errors.Is(err, io.EOF): // which the reader of the stream explains
		return err
	case status.Code(err) == codes.Internal: // what gRPC says of a client that ends a call without its one message
		return api.Errorf(api.BadRequest, "The call ended before its request")
	}
	return transportError(err)
}

// watchFor returns a timer that gives the client up.
func (g *guardedStream) watchFor(did string) *time.Timer {
	stall := g.call.server.cfg.Stall
	if g.call.principal == nil {
		stall = min(stall, noTokenStall)
	}
	return time.AfterFunc(stall, func() {
		err := api.Errorf(api.Cancelled, "The client has %s nothing for %s", did, stall).
			WithHint("Read a stream to its end, or cancel it.")
		select {
		case g.stalled <- err:
		default:
		}
	})
}

// reserveBytes waits until the server's budget has room for bytes that the call has received.
func (c *call) reserveBytes(ctx context.Context, bytes int64) error {
	s := c.server
	bytes = min(bytes, s.cfg.MaxReceivedBytes)
	wait, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	if err := s.budget.Acquire(wait, bytes); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return api.Errorf(api.Busy, "The messages under way fill the %d bytes that the server has for them",
			s.cfg.MaxReceivedBytes).WithHint("Try again in a moment.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		s.budget.Release(bytes)
		return context.Canceled
	}
	c.held += bytes
	return nil
}

// release gives bytes back that the call no longer needs.
func (c *call) release(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = min(bytes, c.held)
	c.held -= bytes
	c.server.budget.Release(bytes)
}

// releaseAll gives back what a call that has ended still holds.
func (c *call) releaseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.server.budget.Release(c.held)
	c.held = 0
}

// errDraining is the answer to calls that a server which stops does not take, or cuts off.
func errDraining() error {
	return api.Errorf(api.Draining, "The server is shutting down").WithHint("Try again in a moment.")
}

// recovered runs f; a panic is logged with its stack and becomes an error.
func recovered(log *slog.Logger, f func() error) error {
	err := safely.Do(f)
	if p, ok := err.(*safely.Panic); ok { //nolint:errorlint // one inside another was logged already
		log.Error("panic", "value", fmt.Sprint(p.Value), "stack", string(p.Stack))
		return errors.New(p.Error())
	}
	return err
}
