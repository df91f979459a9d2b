package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/data/source"
)

// succeed runs a command that needs no data folder.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	status, stdout, stderr := call(t, args...)
	if status != 0 {
		t.Fatalf("%v: status %d, %s", args, status, stderr)
	}
	return stdout
}

// TestData: an .npz becomes a data set of the data folder, that one a zip again, and
// both tell the same hash.
func TestData(t *testing.T) {
	dir := t.TempDir()
	in, folder, out := filepath.Join(dir, "in.npz"), filepath.Join(dir, "data"), filepath.Join(dir, "out.zip")
	pixels := make([]uint8, 3*8*8*3)
	for i := range pixels {
		pixels[i] = uint8(i * 7)
	}
	err := writeFile(in, func(w io.Writer) error {
		return data.WriteNPZ(w, map[string]*data.Array{
			"images": {Shape: []int{3, 8, 8, 3}, Values: pixels}, "labels": {Shape: []int{3}, Values: []int64{1, 0, 1}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	inspect := func(path string) (r source.Report) {
		t.Helper()
		if err := json.Unmarshal([]byte(succeed(t, "data", "inspect", path, "--json")), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := inspect(in)
	if want.Images != 3 || len(want.Hash) != 64 || len(want.Classes) != 2 || want.Classes[1].Images != 2 {
		t.Errorf("%+v", want)
	}
	succeed(t, "data", "convert", in, "--data", folder, "--name", "three")
	stored := filepath.Join(folder, "datasets", "three")
	if text := succeed(t, "data", "convert", stored, "--out", out); !strings.Contains(text, "3 images of 8×8 pixels in 3 channels, with labels") {
		t.Errorf("said %q", text)
	}
	for _, path := range []string{stored, out} {
		if got := inspect(path); got.Hash != want.Hash {
			t.Errorf("%s has the hash %s, want %s", path, got.Hash, want.Hash)
		}
	}
	if text := succeed(t, "data", "inspect", out); !strings.Contains(text, "class 1") || !strings.Contains(text, want.Hash) {
		t.Errorf("said %q", text)
	}
	succeed(t, "data", "convert", in, "--out", out, "--resolution", "4x4", "--transform", "center-crop", "--channels", "1", "--labels", "none", "--replace")
	if r := inspect(out); r.Labels || r.Sizes[0] != (source.Size{Height: 4, Width: 4, Channels: 1, Images: 3}) {
		t.Errorf("%+v", r)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDataRefusals(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.zip")
	if err := os.WriteFile(bad, []byte("PK\x03\x04 and no more"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"inspect"}, 2, "PATH is missing"},
		{[]string{"inspect", filepath.Join(dir, "absent")}, 1, "no such file"},
		{[]string{"inspect", bad}, 1, "bad.zip: is no whole zip"},
		{[]string{"convert", bad}, 2, "either --name"},
		{[]string{"convert", bad, "--name", "a", "--out", "b"}, 2, "either --name"},
		{[]string{"convert", bad, "--name", "../a"}, 1, "name"},
		{[]string{"convert", bad, "--out", bad}, 1, "--replace"},
		{[]string{"convert", bad, "--out", filepath.Join(dir, "x"), "--resolution", "big"}, 2, "number of pixels"},
		{[]string{"convert", bad, "--out", filepath.Join(dir, "x"), "--transform", "center-crop"}, 2, "needs a resolution"},
		{[]string{"convert", bad, "--out", filepath.Join(dir, "x"), "--labels", "some"}, 1, "auto, folder or none"},
		{[]string{"convert", bad, "--out", filepath.Join(dir, "x")}, 1, "no whole zip"},
	} {
		status, _, stderr := call(t, append([]string{"data"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: status %d, %q; want %d and %q", c.args, status, stderr, c.status, c.says)
		}
	}
}
