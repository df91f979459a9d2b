package flight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// TestShutdownDrains: active calls end normally, and new calls are DRAINING.
func TestShutdownDrains(t *testing.T) {
	s := serve(t, Config{})
	running := make(chan reply, 1)
	go func() {
		running <- s.get(t.Context(), t, `{"op":"Sample","rows":40,"batch":1,"tick_ms":10}`)
	}()
	eventually(t, "start", time.Second, func() bool { return s.fake.working.Load() == 1 })
	shut := make(chan error, 1)
	go func() { shut <- s.Shutdown(t.Context()) }()
	eventually(t, "draining", time.Second, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.draining
	})

	wantStatus(t, "get", s.get(t.Context(), t, `{"op":"Sample","rows":1}`).err, codes.Unavailable, "[DRAINING] ")
	wantStatus(t, "action", s.doAction(t.Context(), "ListModels"), codes.Unavailable, "[DRAINING] ")
	if r := <-running; r.err != nil || len(r.indices()) != 40 || r.last()["event"] != "end" {
		t.Errorf("the stream under way: %d rows, %v", len(r.indices()), r.err)
	}
	if err := <-shut; err != nil {
		t.Error(err)
	}
}

// TestShutdownIsForced: when the context ends, streams and their work end.
func TestShutdownIsForced(t *testing.T) {
	s := serve(t, Config{})
	running := make(chan reply, 1)
	go func() {
		running <- s.get(t.Context(), t, `{"op":"Sample","rows":1000000,"batch":1,"tick_ms":10}`)
	}()
	eventually(t, "start", time.Second, func() bool { return s.fake.working.Load() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if n := s.fake.working.Load(); n != 0 {
		t.Errorf("%d operations at work after Shutdown", n)
	}
	wantStatus(t, "the stream under way", (<-running).err, codes.Unavailable, "[DRAINING] ")
}

// TestHealth: the health service reports that the server serves, and that it stops; a watcher does not delay Shutdown.
func TestHealth(t *testing.T) {
	s := serve(t, Config{})
	conn := dial(t, s.address)
	client := grpc_health_v1.NewHealthClient(conn)
	watch, err := client.Watch(t.Context(),
		&grpc_health_v1.HealthCheckRequest{Service: "arrow.flight.protocol.FlightService"})
	if err != nil {
		t.Fatal(err)
	}
	next := func() grpc_health_v1.HealthCheckResponse_ServingStatus {
		r, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return r.GetStatus()
	}
	if got := next(); got != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("%s before the end", got)
	}
	start := time.Now()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("Shutdown took %s", took)
	}
	if got := next(); got != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%s at the end", got)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if _, err := Listen(t.Context(), "unix:"+path+strings.Repeat("s", 108)); err == nil ||
		!strings.Contains(err.Error(), "at most 10") {
		t.Errorf("a path that is too long: %v", err)
	}
	l, err := Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if Location(l, false) != "grpc+unix://"+path {
		t.Errorf("location %s", Location(l, false))
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	s := serveOn(t, l, "unix:"+path, Config{})
	if r := s.get(t.Context(), t, `{"op":"Sample","rows":3}`); r.err != nil || len(r.indices()) != 3 {
		t.Errorf("%v, %v", r.indices(), r.err)
	}
	if _, err := Listen(t.Context(), "unix:"+path); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("listening twice: %v", err)
	}
}

func TestSocketFilesInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatalf("a dead server's socket: %v", err)
	}
	_ = l.Close()
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), "unix:"+path); err == nil {
		t.Error("a file was replaced")
	}
}

// TestStatusOfADeadline: the code in brackets matches gRPC's. The client may get gRPC's own status instead.
func TestStatusOfADeadline(t *testing.T) {
	s := serve(t, Config{})
	err := toStatus(s.log, "id", fmt.Errorf("sampling: %w", context.DeadlineExceeded))
	wantStatus(t, "the server's", err, codes.DeadlineExceeded, "[DEADLINE_EXCEEDED] The deadline of the request passed.")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	wantStatus(t, "the client's", s.get(ctx, t, `{"op":"Sample","rows":1000000,"tick_ms":10}`).err,
		codes.DeadlineExceeded, "")
}
