package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/folderlock"
)

// TestFsck: a whole folder is said to be whole; a flipped bit is named and ends in status 1; a repair wants the folder
// to itself.
func TestFsck(t *testing.T) {
	dir := folder(t)
	status, out, _ := call(t, "fsck", "--data", dir)
	if status != 0 || !strings.Contains(out, "datasets/bars  ok") || !strings.Contains(out, "1 ok, 0 unverified") {
		t.Errorf("status %d, %s", status, out)
	}
	images := filepath.Join(dir, "datasets", "bars", "images.npy")
	b, err := os.ReadFile(images)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(images, b, 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, _ = call(t, "fsck", "--data", dir, "--json")
	var report inspection
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if status != 1 || len(report.Findings) != 1 || report.Findings[0].State != "damaged" ||
		!strings.HasPrefix(report.Findings[0].Faults[0], "images.npy ") {
		t.Errorf("status %d, %s", status, out)
	}
	lock, err := folderlock.Acquire(dir, "a server")
	if err != nil {
		t.Fatal(err)
	}
	fails(t, 1, "1 damaged", "fsck", "--data", dir) // next to a server
	fails(t, 1, "in use", "fsck", "--data", dir, "--repair")
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, "there is no data folder", "fsck", "--data", filepath.Join(dir, "absent"))
}
