package flight

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// begin counts a call in, unless the server drains or its caller has too many.
func (s *Server) begin(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := c.who.key
	if s.draining.Load() {
		return errDraining()
	}
	switch n := s.active[who]; {
	case who == noToken && n >= maxNoToken:
		return api.Errorf(api.Busy, "%d calls without a token are under way", n).
			WithHint("Send a token, or wait for one to end.")
	case n >= s.cfg.MaxCalls:
		return api.Errorf(api.Busy, "%d of your calls are under way", n).WithHint("Wait for one to end.")
	}
	s.active[who]++
	return nil
}

// watch counts a call among those that watch, from when it is known to be one: nobody waits for its end.
func (s *Server) watch(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := c.who.key
	if n := s.watching[who]; n >= s.cfg.MaxCalls {
		return api.Errorf(api.Busy, "%d of your calls watch runs", n).WithHint("Wait for one to end.")
	}
	c.watches, c.unwatch = true, context.AfterFunc(s.last, c.cancel)
	s.watching[who]++
	s.leave(who)
	return nil
}

// end counts a call out.
func (s *Server) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := c.who.key
	if !c.watches {
		s.leave(who)
		return
	}
	c.unwatch()
	if s.watching[who]--; s.watching[who] == 0 {
		delete(s.watching, who)
	}
}

// leave counts an active call out. The last one of a draining server is what Shutdown waits for.
func (s *Server) leave(who string) {
	if s.active[who]--; s.active[who] == 0 {
		delete(s.active, who)
	}
	if len(s.active) == 0 && s.draining.Load() {
		close(s.idle)
	}
}

// underWay returns the number of calls under way, those that watch among them.
func (s *Server) underWay() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range []map[string]int{s.active, s.watching} {
		for _, of := range calls {
			n += of
		}
	}
	return n
}

// call is one call under way. Its goroutines share the count of rows.
type call struct {
	server  *Server
	ctx     context.Context // gRPC's
	who     *caller
	method  string
	op      string   // the operation's name, once the request has been read; empty where there is none
	asked   api.Call // the request, once its caller is known to be allowed it
	id      string
	log     *slog.Logger
	started time.Time
	rows    atomic.Int64 // of tables, either way
	holds   atomic.Int64 // bytes of the server's room for messages
	ended   atomic.Bool
	watches bool               // it is counted among those that watch
	unwatch func() bool        // ends what would cut it off with them
	cancel  context.CancelFunc // of its work; nil for calls without a stream
}

type callKey struct{}

// countRows adds rows to the call of a context.
func countRows(ctx context.Context, rows int) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.rows.Add(int64(rows))
	}
}

// askedOf returns what the call of a context asks for.
func askedOf(ctx context.Context) api.Call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c.asked
}

// context returns the context of the call's work.
func (c *call) context(ctx context.Context) context.Context {
	return context.WithValue(api.WithClient(ctx, c.who.key), callKey{}, c)
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

// caller is who makes a call.
type caller struct {
	*auth.Principal        // nil if the call came without a token
	key             string // whom limits and slots of the device are counted for
}

// Callers without a token, on a server with tokens, are counted as one, and have a few calls at a time: gRPC reads the
// whole of a request before anybody knows whether it is one for openAction.
const (
	noToken    = "no token"
	maxNoToken = 8
)

type callerKey struct{}

// callerOf returns the caller that admit found; without one nothing is allowed.
func callerOf(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{}
}
