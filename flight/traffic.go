package flight

import (
	"context"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// traffic hears of connections and messages from gRPC. It numbers the connections, so that callers without a name can
// be told apart, and counts the bytes of each call.
type traffic struct{ last, open atomic.Int64 }

type connectionKey struct{}

// connectionOf returns the number of a context's connection.
func connectionOf(ctx context.Context) string {
	name, _ := ctx.Value(connectionKey{}).(string)
	return name
}

// TagConn implements stats.Handler.
func (t *traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, "connection "+strconv.FormatInt(t.last.Add(1), 10))
}

// HandleConn implements stats.Handler.
func (t *traffic) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		t.open.Add(1)
	case *stats.ConnEnd:
		t.open.Add(-1)
	}
}

// bytesOfCall are the bytes of a call's messages as they travel.
type bytesOfCall struct{ in, out atomic.Int64 }

type bytesKey struct{}

// bytesOf returns the counts of a context's call.
func bytesOf(ctx context.Context) (in, out int64) {
	if b, ok := ctx.Value(bytesKey{}).(*bytesOfCall); ok {
		return b.in.Load(), b.out.Load()
	}
	return 0, 0
}

// TagRPC implements stats.Handler.
func (t *traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, bytesKey{}, &bytesOfCall{})
}

// HandleRPC implements stats.Handler.
func (t *traffic) HandleRPC(ctx context.Context, s stats.RPCStats) {
	b, ok := ctx.Value(bytesKey{}).(*bytesOfCall)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.InPayload:
		b.in.Add(int64(s.WireLength))
	case *stats.OutPayload:
		b.out.Add(int64(s.WireLength))
	}
}
