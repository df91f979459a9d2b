package folderlock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func acquire(t *testing.T, dir string) *Lock {
	t.Helper()
	l, err := Acquire(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// held returns the error of a folder that must be in use.
func held(t *testing.T, dir string) *InUseError {
	t.Helper()
	_, err := Acquire(dir, "test")
	var h *InUseError
	if !errors.As(err, &h) {
		t.Fatalf("acquiring says %v, want that the folder is in use", err)
	}
	return h
}

func TestOneHolderAtATime(t *testing.T) {
	dir := t.TempDir()
	l := acquire(t, dir)
	if h := held(t, dir); h.PID != os.Getpid() || h.Address != "" || h.Started.IsZero() {
		t.Errorf("holder %+v", h.Holder)
	}
	if err := l.Publish("grpc://127.0.0.1:8815"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("the data folder %q is in use by process %d (test, grpc://127.0.0.1:8815); stop it, or choose "+
		"another --data", dir, os.Getpid())
	if got := held(t, dir).Error(); got != want {
		t.Errorf("says %s\nwant %s", got, want)
	}
	if err := l.Publish(""); err != nil {
		t.Fatal(err)
	}
	if h := held(t, dir); h.Address != "" {
		t.Errorf("address %q, want none", h.Address)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := acquire(t, dir).Release(); err != nil {
		t.Fatal(err)
	}
}

// What a killed process leaves in the file misleads nobody.
func TestKilledHolder(t *testing.T) {
	if dir := os.Getenv("ANISOFLIGHT_TEST_LOCK"); dir != "" { // the process that is killed
		l := acquire(t, dir)
		if err := l.Publish("grpc://127.0.0.1:1"); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		select {}
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledHolder$")
	cmd.Env = append(os.Environ(), "ANISOFLIGHT_TEST_LOCK="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the process says %q", line)
	}
	if h := held(t, dir); h.PID != cmd.Process.Pid || h.Address != "grpc://127.0.0.1:1" {
		t.Errorf("holder %+v", h.Holder)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	text, err := os.ReadFile(filepath.Join(dir, LockFile))
	if err != nil || !strings.Contains(string(text), "127.0.0.1:1") {
		t.Fatalf("the file holds %q, %v", text, err)
	}
	l := acquire(t, dir)
	if h := held(t, dir); h.PID != os.Getpid() || h.Address != "" {
		t.Errorf("holder %+v", h.Holder)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
