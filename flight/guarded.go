package flight

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/anisoflight/anisoflight/flight/api"
)

// guarded is a call's stream. Its first message is checked before the handler sees it; its context ends a little before
// its deadline; a client that neither takes nor sends anything for as long as Config.Stall is given up.
type guarded struct {
	grpc.ServerStream
	ctx   context.Context
	call  *call
	inbox inbox
	read  bool // the first message has been

	gone atomic.Pointer[api.Error] // why the client was given up; nothing is sent or received from then on
}

// Context implements grpc.ServerStream.
func (g *guarded) Context() context.Context { return g.ctx }

// SendMsg implements grpc.ServerStream. It blocks while the client's window is full.
func (g *guarded) SendMsg(m any) error {
	return g.within("taken", func() error { return g.ServerStream.SendMsg(m) })
}

// RecvMsg implements grpc.ServerStream.
func (g *guarded) RecvMsg(m any) error {
	receive := func() error { return g.inbox.receive(g.ctx, !g.read, m) }
	if g.read && g.call.method == doExchange && g.gone.Load() == nil {
		return receive()
	}
	if g.read {
		return g.within("sent", receive)
	}
	if err := g.within("sent", receive); err != nil {
		return g.unasked(err)
	}
	g.read = true
	return g.call.authorize(m)
}

// unasked makes an error of a call whose first message has not come one of the contract: its client has left, or has
// sent nothing. The end of a stream of data is its reader's to judge.
func (g *guarded) unasked(err error) error {
	if !errors.Is(err, io.EOF) {
		return transportError(err)
	}
	if streams(g.call.method) {
		return err
	}
	return api.Errorf(api.BadRequest, "The call ended before its request")
}

// within does f, and gives the client up if that takes too long. gRPC has no way to stop f but the end of the call,
// which the error brings about.
func (g *guarded) within(did string, f func() error) error {
	if e := g.gone.Load(); e != nil {
		return e
	}
	stall := g.call.server.cfg.Stall
	if g.call.who.Principal == nil {
		stall = min(stall, noTokenStall)
	}
	done := make(chan error, 1)
	go func() { done <- recovered(g.call.log, f) }()
	timer := time.NewTimer(stall)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		e := api.Errorf(api.Cancelled, "The client has %s nothing for %s", did, stall).
			WithHint("Read a stream to its end, or cancel it.")
		g.gone.Store(e)
		return e
	}
}
