package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/train/data"
)

// TestData: the commands reach the Python package with their settings, and say what it says. What it reads, and how, is
// tested there.
func TestData(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.npz"), filepath.Join(dir, "out.zip")
	err := command.WriteFile(in, func(w io.Writer) error {
		return data.WriteNPZ(w, map[string]*data.Array{
			"images": {Shape: []int{3, 8, 8, 3}, Values: make([]uint8, 3*8*8*3)},
			"labels": {Shape: []int{3}, Values: []int64{1, 0, 1}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANISOFLIGHT_RESOLUTION", "6x4")
	status, said, stderr := call(t, "data", "convert", in, "--out", out, "--channels", "1", "--quiet")
	if want := out + ": 3 images of 4×6 pixels in 1 channels, with labels\n"; status != 0 || said != want {
		t.Errorf("status %d, said %q, want %q\n%s", status, said, want, stderr)
	}
	status, said, stderr = call(t, "data", "inspect", out, "--json", "--labels", "none")
	var report struct {
		Images int
		Labels bool
		Sizes  []map[string]int
	}
	if err := json.Unmarshal([]byte(said), &report); err != nil || status != 0 {
		t.Fatalf("%v, status %d\n%s", err, status, stderr)
	}
	if report.Images != 3 || report.Labels || report.Sizes[0]["width"] != 6 {
		t.Errorf("%+v", report)
	}
}

// A data set goes to the server that works on the folder, and to one of the command's own where there is none.
func TestDataGoesThroughTheFoldersServer(t *testing.T) {
	dir, in := t.TempDir(), filepath.Join(t.TempDir(), "in.npz")
	writeImages(t, in)
	convert := func(name string) {
		t.Helper()
		status, said, stderr := call(t, "data", "convert", in, "--name", name, "--data", dir, "--quiet", "--labels", "none")
		if want := name + ": 3 images of 8×8 pixels in 3 channels, without labels\n"; status != 0 || said != want {
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

func TestDataRefusals(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.zip")
	if err := os.WriteFile(bad, []byte("PK\x03\x04 and no more"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"inspect"}, 2, "PATH is missing"},
		{[]string{"inspect", bad}, 1, "bad.zip: is no whole zip"},
		{[]string{"convert", bad}, 2, "--name --out is required"},
	} {
		status, _, stderr := call(t, append([]string{"data"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: status %d, %q; want %d and %q", c.args, status, stderr, c.status, c.says)
		}
	}
}
