package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
	stop     func() int // ends it and returns the exit status
}

func startServer(t *testing.T, dir string, more ...string) served {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	s := served{log: &lines{}}
	status := make(chan int, 1)
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", dir, "--device", "go"}, more...)
	go func() { status <- run(ctx, args, s.log, s.log) }()
	s.location = connect.LocationOf(s.log.await(t, "listening on "))
	s.stop = func() int {
		interrupt()
		return <-status
	}
	return s
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
	c, err := client.Dial(t.Context(), s.location, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
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
	if status := s.stop(); status != 0 {
		t.Errorf("the server ends with status %d\n%s", status, s.log)
	}
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
	if status := s.stop(); status != 0 {
		t.Errorf("the server ends with status %d\n%s", status, s.log)
	}
	if status, _, stderr := call(t, "schedule", "list"); status != 1 || !strings.Contains(stderr, address) {
		t.Errorf("without the server: status %d, %q", status, stderr)
	}
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
	if status := s.stop(); status != 0 {
		t.Errorf("the server ends with status %d\n%s", status, s.log)
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
		status, _, stderr := call(t, "schedule", "list", "--data", dir, "--device", "go")
		if status != 1 || !strings.Contains(stderr, fmt.Sprintf("is in use by process %d (anisoflight train); stop it",
			os.Getpid())) {
			t.Errorf("status %d, %q", status, stderr)
		}
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
	s := startServer(t, dir, "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--client-ca", clientCert)
	list := []string{"schedule", "list", "--data", dir}
	if status, _, stderr := call(t, list...); status != 1 || !strings.Contains(stderr, "certificate") {
		t.Errorf("without the authority: status %d, %q", status, stderr)
	}
	list = append(list, "--tls-ca", cert, "--client-cert", clientCert, "--client-key", clientKey)
	if status, got, stderr := call(t, list...); status != 0 || !strings.HasPrefix(got, "NAME") {
		t.Errorf("status %d, %q, %q", status, got, stderr)
	}
	if status, _, stderr := call(t, append(list[:4:4], "--tls-ca", key)...); status != 1 ||
		!strings.Contains(stderr, "holds no certificate") {
		t.Errorf("a key instead of the authority: status %d, %q", status, stderr)
	}
	if status := s.stop(); status != 0 {
		t.Errorf("the server ends with status %d\n%s", status, s.log)
	}
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
	if status, _, stderr := call(t, append(sample, "--data", dir, "--device", "nowhere.so")...); status != 1 ||
		!strings.Contains(stderr, "nowhere.so") {
		t.Errorf("sample: status %d, %q", status, stderr)
	}
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
	if status, _, stderr := call(t, "schedule", "list", "--server", s.location); status != 1 ||
		!strings.Contains(stderr, "token") {
		t.Errorf("without a token: status %d, %q", status, stderr)
	}
	if status, _, stderr := call(t, "schedule", "list", "--server", s.location, "--token", token); status != 0 {
		t.Errorf("with a token: status %d, %q", status, stderr)
	}
	if status := s.stop(); status != 0 {
		t.Errorf("the server ends with status %d\n%s", status, s.log)
	}
	for _, wrong := range [][]string{
		{"new"},
		{"new", "--name", "a b"},
		{"new", "--name", "a", "--scopes", "write"},
		{"old"},
	} {
		if status, _, stderr := call(t, append([]string{"token"}, wrong...)...); status != 2 {
			t.Errorf("%v: status %d, %q", wrong, status, stderr)
		}
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
	if status := s.stop(); status != 0 {
		t.Errorf("the server ends with status %d\n%s", status, s.log)
	}
}
