package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/base/folderlock"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// call runs the command line and returns its exit status and output.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

// must runs a command line that must succeed, on the pure-Go backend, which
// compiles nothing, and returns its output.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	status, stdout, stderr := call(t, append(args, "--data", dir, "--device", "go")...)
	if status != 0 {
		t.Fatalf("anisoflight %s: status %d\n%s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}

// folder makes a data folder with the data set "bars".
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeBars(t, dir)
	return dir
}

// served is a server in this process.
type served struct {
	location string
	log      *lines
	stop     func() // ends it, at the latest with the test
}

func startServer(t *testing.T, dir string, more ...string) served {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	s := served{log: &lines{}}
	ended := make(chan int, 1)
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", dir, "--device", "go"}, more...)
	go func() { ended <- run(ctx, args, s.log, s.log) }()
	s.location = connect.LocationOf(s.log.await(t, "listening on "))
	s.stop = sync.OnceFunc(func() {
		interrupt()
		if status := <-ended; status != 0 {
			t.Errorf("the server ends with status %d\n%s", status, s.log)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// dial connects to a server.
func dial(t *testing.T, location string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), location, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// fails runs a command line that must end with a status and an error that has a text.
func fails(t *testing.T, status int, text string, args ...string) {
	t.Helper()
	if got, _, stderr := call(t, args...); got != status || !strings.Contains(stderr, text) {
		t.Errorf("%v: status %d, %q; want status %d and an error with %q", args, got, stderr, status, text)
	}
}

// TestFolderInUseByACommand: a command waits for another command that ends, but not for ever.
func TestFolderInUseByACommand(t *testing.T) {
	dir := folder(t)
	lock, err := folderlock.Acquire(dir, "anisoflight train")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // whose clock does not wait
		fails(t, 1, fmt.Sprintf("is in use by process %d (anisoflight train); stop it", os.Getpid()), "schedule", "list",
			"--data", dir, "--device", "go")
	})
	done := make(chan string)
	go func() {
		_, list, _ := call(t, "schedule", "list", "--data", dir, "--device", "go")
		done <- list
	}()
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if list := <-done; !strings.HasPrefix(list, "NAME") {
		t.Errorf("the list is %q", list)
	}
}

// TestServeTellsMetrics: Prometheus finds calls, the engine's counters and the process's, on loopback alone.
func TestServeTellsMetrics(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir, "--metrics", "127.0.0.1:0")
	reply, err := http.Get("http://" + s.log.await(t, "metrics on ") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"anisoflight_calls_active ", "anisoflight_device_turns_total 0",
		"anisoflight_compiled_total", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("there is no %s in\n%s", name, text)
		}
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits for a line and returns the word after the marker.
func (l *lines) await(t *testing.T, marker string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, rest, found := strings.Cut(l.String(), marker); found && strings.ContainsAny(rest, "\" \n") {
			return rest[:strings.IndexAny(rest, "\" \n")]
		}
	}
	t.Fatalf("no line with %q:\n%s", marker, l)
	return ""
}
