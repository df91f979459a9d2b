package flight

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
)

// ask does the action ServerInfo with a body.
func (s *testServer) ask(ctx context.Context, body []byte, options ...grpc.CallOption) error {
	return errorOf(rest(s.client.DoAction(ctx, &flight.Action{Type: openAction, Body: body}, options...)))
}

// TestStrangersCostLittle: without a token, a message above the limit is refused by its length, compressed or not, and
// a request of more than 64 KB before its JSON is parsed.
func TestStrangersCostLittle(t *testing.T) {
	s, tokens := guardedServer(t, Config{MaxMessageBytes: 1 << 20})
	body := []byte(`{"a":"` + strings.Repeat("x", 24<<20) + `"}`)
	for what, option := range map[string]grpc.CallOption{
		"24 MiB": grpc.EmptyCallOption{}, "24 MiB, zipped": grpc.UseCompressor(gzip.Name),
	} {
		took := alloctest.Bytes(func() {
			wantStatus(t, what, s.ask(t.Context(), body, option), codes.ResourceExhausted, "grpc: received message ")
		})
		if most := uint64(len(body)) * 2; took > most { // by its client, and what was unpacked
			t.Errorf("%s: %d bytes for one call of %d", what, took, len(body))
		}
	}
	wantStatus(t, "70 KB", s.ask(t.Context(), body[:70<<10]), codes.ResourceExhausted,
		"[TOO_LARGE] A request without a token may have 65536 bytes, got 71680.")
	wantStatus(t, "60 KB", s.ask(t.Context(), body[:60<<10]), codes.InvalidArgument, "[BAD_REQUEST] ")
	wantStatus(t, "with a token", s.ask(with(t.Context(), "Bearer "+tokens[api.ReadScope]), body[:maxRequestBytes+1]),
		codes.ResourceExhausted, "[TOO_LARGE] ")
	if err := s.ask(t.Context(), []byte(`{}`), grpc.UseCompressor(gzip.Name)); err != nil {
		t.Errorf("a zipped request: %v", err)
	}
}

// TestMessagesShareABudget: messages in use of all calls stay within MaxReceivedBytes. Beyond it calls wait, and are
// BUSY after Patience. The bytes of messages that are no longer used are free again.
func TestMessagesShareABudget(t *testing.T) {
	s := serve(t, Config{MaxMessageBytes: 1 << 20, MaxReceivedBytes: 1 << 20, Patience: 200 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := labels(make([]int32, 200_000)...).record(t) // 800 KB
	for range 50 {
		p := s.put(t.Context(), t, target, labels(1).record(t).Schema())
		if err := p.writer.Write(in); err != nil {
			t.Fatal(err)
		}
		if _, err := p.end(); err != nil {
			t.Fatal(err)
		}
	}
	slow := make(chan reply, 1)
	large := []byte(`{"op":"Sample","rows":1000000,"batch":1,"tick_ms":10}` + strings.Repeat(" ", 30_000))
	go func() { slow <- s.get(ctx, t, string(large)) }() // holds 32 times its bytes while it is under way
	eventually(t, "start", time.Second, func() bool { return s.fake.working.Load() == 1 })
	p := s.put(t.Context(), t, target, labels(1).record(t).Schema())
	_ = p.writer.Write(in)
	_, err := p.end()
	wantStatus(t, "no room", err, codes.ResourceExhausted, "[BUSY] Messages in use fill the server's limit")
	cancel()
	<-slow
	eventually(t, "room", time.Second, func() bool { return s.budget.TryAcquire(1 << 20) })
}

// TestWatchersKeepNobodyBusy: calls that watch a run have their own limit, and a server that stops does not wait for
// them.
func TestWatchersKeepNobodyBusy(t *testing.T) {
	s := serve(t, Config{MaxCalls: 2})
	watchers := make(chan reply, 2)
	for range 2 {
		go func() {
			watchers <- s.get(t.Context(), t, `{"op":"WatchRun","rows":1000000,"batch":1,"tick_ms":10}`)
		}()
	}
	eventually(t, "start", time.Second, func() bool { return s.fake.working.Load() == 2 })
	wantStatus(t, "one more", s.get(t.Context(), t, `{"op":"WatchRun","rows":1}`).err, codes.ResourceExhausted,
		"[BUSY] 2 of your calls watch runs.")
	if r := s.get(t.Context(), t, `{"op":"Sample","rows":1}`); r.err != nil {
		t.Errorf("a sample beside them: %v", r.err)
	}
	start := time.Now()
	if err := s.Shutdown(t.Context()); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("Shutdown: %v after %s", err, time.Since(start))
	}
	for range 2 {
		wantStatus(t, "a watcher", (<-watchers).err, codes.Unavailable, "[DRAINING] ")
	}
	if n := s.activeCalls(); n != 0 {
		t.Errorf("%d calls under way", n)
	}
}
