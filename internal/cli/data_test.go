package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A data set goes to the server that works on the folder, and to one of the command's own where there is none.
func TestDataGoesThroughTheFoldersServer(t *testing.T) {
	dir, in := t.TempDir(), filepath.Join(t.TempDir(), "in.npz")
	writeImages(t, in)
	convert := func(name string) {
		t.Helper()
		status, said, stderr := call(t, "data", "convert", in, "--name", name, "--data", dir, "--quiet", "--labels", "none")
		want := filepath.Join(dir, "datasets", name) + ": 3 images of 8×8 pixels in 3 channels, without labels\n"
		if status != 0 || said != want {
			t.Fatalf("status %d, said %q, want %q\n%s", status, said, want, stderr)
		}
	}
	convert("first")
	s := startServer(t, dir)
	convert("second")
	s.stop()
	for _, name := range []string{"first", "second"} {
		if _, err := os.Stat(filepath.Join(dir, "datasets", name)); err != nil {
			t.Error(err)
		}
	}
}

// What the Python package refuses is said once, with its exit status.
func TestDataRefusals(t *testing.T) {
	for status, args := range map[int][]string{1: {"inspect", "nothing.zip"}, 2: {"convert", "nothing.zip"}} {
		got, _, stderr := call(t, append([]string{"data"}, args...)...)
		if got != status || strings.Contains(stderr, "exit status") {
			t.Errorf("%v: status %d, %q; want %d", args, got, stderr, status)
		}
	}
}
