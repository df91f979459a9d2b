package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// A data set goes to a server of the command's own if the folder has none; beside has the command next to a server.
func TestDataWithoutAServer(t *testing.T) {
	dir, in := t.TempDir(), filepath.Join(t.TempDir(), "in.npz")
	writeImages(t, in)
	status, said, stderr := call(t, "data", "convert", in, "--name", "a", "--data", dir, "--quiet", "--labels", "none")
	path := filepath.Join(dir, "datasets", "a")
	if status != 0 || said != path+": 3 images of 8×8 pixels in 3 channels, without labels\n" || !command.Exists(path) {
		t.Fatalf("status %d, said %q\n%s", status, said, stderr)
	}
}

// What the Python package refuses is said once, with its exit status.
func TestDataRefusals(t *testing.T) {
	status, _, stderr := call(t, "data", "convert", "nothing.zip")
	if status != 2 || strings.Contains(stderr, "exit status") {
		t.Errorf("status %d, %q", status, stderr)
	}
}
