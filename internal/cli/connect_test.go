package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/base/folderlock"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/testing/certtest"
)

// TestMain runs the command line if a test has started this program as a process.
func TestMain(m *testing.M) {
	if os.Getenv("ANISOFLIGHT_TEST_COMMAND") != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
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

// makeTwo stores the schedule "two", of the data set "bars".
func makeTwo(t *testing.T, more ...string) {
	t.Helper()
	args := append([]string{"schedule", "start", "--name", "two", "--dataset", "bars"}, more...)
	if status, _, stderr := call(t, args...); status != 0 {
		t.Fatalf("%v: status %d\n%s", args, status, stderr)
	}
}

// TestOneServerOfAFolder: a folder has one server, and commands on the folder use it.
func TestOneServerOfAFolder(t *testing.T) {
	dir := folder(t)
	s := startServer(t, dir)

	status, _, stderr := call(t, "serve", "--listen", "127.0.0.1:0", "--data", dir, "--device", "nowhere.so")
	want := fmt.Sprintf("anisoflight: the data folder %q is in use by process %d (anisoflight serve, %s); stop it, or "+
		"choose another --data\n", dir, os.Getpid(), s.location)
	if status != 1 || stderr != want {
		t.Errorf("a second server: status %d, says %q, want %q", status, stderr, want)
	}

	makeTwo(t, "--data", dir)
	c := dial(t, s.location)
	if all, err := c.ListSchedules(t.Context()); err != nil || len(all) != 1 || all[0].Name != "two" {
		t.Errorf("the server has %+v, %v", all, err)
	}
	if _, list, stderr := call(t, "schedule", "list", "--data", dir); !strings.Contains(list, "two") {
		t.Errorf("the list is %q, %q", list, stderr)
	}
	if _, _, stderr := call(t, "schedule", "list", "--data", dir, "--device", "go"); !strings.Contains(stderr,
		"--device is not used") {
		t.Errorf("of a device that the server does not use the command says %q", stderr)
	}
	s.stop()
	if list := must(t, dir, "schedule", "list"); !strings.Contains(list, "two") {
		t.Errorf("without the server the list is %q", list)
	}
}

// TestServerWithoutAFolder: with --server a command needs no folder and makes none.
func TestServerWithoutAFolder(t *testing.T) {
	s := startServer(t, folder(t))
	nowhere := filepath.Join(t.TempDir(), "none")
	address := strings.TrimPrefix(s.location, "grpc://")
	makeTwo(t, "--data", nowhere, "--server", address)
	t.Setenv("ANISOFLIGHT_SERVER", s.location)
	status, list, stderr := call(t, "schedule", "list", "--data", nowhere)
	if status != 0 || !strings.Contains(list, "two") {
		t.Errorf("status %d, the list is %q, %q", status, list, stderr)
	}
	if command.Exists(nowhere) {
		t.Error("a folder was made")
	}
	s.stop()
	fails(t, 1, address, "schedule", "list")
}

// TestTrainingOnAServer: an interrupt pauses and saves a training on a server.
func TestTrainingOnAServer(t *testing.T) {
	dir := folder(t)
	s := startServer(t, dir)
	if got := pretrain(t, dir, "bars"); !strings.Contains(got, "run bars: done after step 3") {
		t.Errorf("train says %q", got)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		c, err := client.Dial(ctx, s.location, client.Options{})
		for err == nil && ctx.Err() == nil {
			if info, err := c.GetRun(ctx, "long"); err == nil && info.Step > 0 {
				interrupt()
			}
		}
	}()
	var out lines
	status := run(ctx, []string{
		"train", "--name", "long", "--stage", "pretrain", "--dataset", "bars", "--network", tinyNetwork, "--batch", "8",
		"--kimg", "1000", "--server", s.location,
	}, &out, io.Discard)
	if status != 130 || !strings.Contains(out.String(), "run long: paused after step") ||
		!strings.Contains(out.String(), "--resume --server "+s.location) {
		t.Errorf("status %d, says %q", status, out.String())
	}
	if _, list, _ := call(t, "model", "list", "--data", dir); !strings.Contains(list, "long") ||
		!strings.Contains(list, "bars") {
		t.Errorf("the models are\n%s", list)
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

// TestDefaultFolderIsMade: a command that stores something makes the default folder.
func TestDefaultFolderIsMade(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"model", "mixture", "--name", "two", "--means", "[[0]]", "--covariances", "[[[1]]]", "--device", "go"}
	if status, _, stderr := call(t, args...); status != 0 {
		t.Fatalf("%v: status %d\n%s", args, status, stderr)
	}
	if list := must(t, "data", "model", "list"); !strings.Contains(list, "two") {
		t.Errorf("the list is %q", list)
	}
}

// TestServerWithTLS: commands on a folder find its server with TLS.
func TestServerWithTLS(t *testing.T) {
	dir := folder(t)
	cert, key := certtest.Files(t, t.TempDir())
	clientCert, clientKey := certtest.Files(t, t.TempDir())
	startServer(t, dir, "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--client-ca", clientCert)
	list := []string{"schedule", "list", "--data", dir}
	fails(t, 1, "certificate", list...)
	list = append(list, "--tls-ca", cert, "--client-cert", clientCert, "--client-key", clientKey)
	if status, got, stderr := call(t, list...); status != 0 || !strings.HasPrefix(got, "NAME") {
		t.Errorf("status %d, %q, %q", status, got, stderr)
	}
	fails(t, 1, "holds no certificate", append(list[:4:4], "--tls-ca", key)...) // a key instead of the authority
}

// TestMetadataNeedsNoDevice: commands that need no device open none.
func TestMetadataNeedsNoDevice(t *testing.T) {
	dir := folder(t)
	pretrain(t, dir, "bars")
	makeTwo(t, "--data", dir, "--device", "nowhere.so")
	for _, args := range [][]string{
		{"model", "list"},
		{"schedule", "list"},
		{"schedule", "show", "--schedule", "two"},
		{"basis", "list"},
	} {
		if status, _, stderr := call(t, append(args, "--data", dir, "--device", "nowhere.so")...); status != 0 {
			t.Errorf("%v: status %d, %q", args, status, stderr)
		}
	}
	sample := []string{"sample", "--model", "bars", "--n", "1", "--out", filepath.Join(t.TempDir(), "a.png")}
	fails(t, 1, "nowhere.so", append(sample, "--data", dir, "--device", "nowhere.so")...)
}

// TestTokens: the token of `token new` is sent, and its line in the server's file makes it valid.
func TestTokens(t *testing.T) {
	_, line, shown := call(t, "token", "new", "--name", "notebook", "--scopes", "read")
	token := strings.Fields(shown[strings.Index(shown, "\n\n"):])[0]
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, folder(t), "--tokens", file)
	fails(t, 1, "token", "schedule", "list", "--server", s.location)
	if status, _, stderr := call(t, "schedule", "list", "--server", s.location, "--token", token); status != 0 {
		t.Errorf("with a token: status %d, %q", status, stderr)
	}
	s.stop()
	for _, wrong := range [][]string{
		{"new"},
		{"new", "--name", "a b"},
		{"new", "--name", "a", "--scopes", "write"},
		{"old"},
	} {
		fails(t, 2, "", append([]string{"token"}, wrong...)...)
	}
}

// TestUnixSocket: a server on a socket file logs its address, and is found by --server.
func TestUnixSocket(t *testing.T) {
	address := "unix:" + filepath.Join(t.TempDir(), "a.sock")
	s := startServer(t, folder(t), "--listen", address)
	if want := connect.LocationOf(address); s.location != want {
		t.Errorf("listening on %s, want %s", s.location, want)
	}
	if status, _, stderr := call(t, "schedule", "list", "--server", address); status != 0 {
		t.Errorf("status %d, %q", status, stderr)
	}
}
