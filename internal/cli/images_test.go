package cli

import (
	"bytes"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/testing/npytest"
)

// sampled returns the images of three rows of 2×1 pixels, the second of which is a preview.
func sampled(channels int, values any) (g images) {
	s := api.Schema{Columns: []api.Column{
		{Name: "seed"},
		{Name: "label"},
		{Name: "step"},
		{Name: "nfe"},
		{Name: "sample", Kind: api.Tensor, Shape: []int{2, 1, channels}},
	}}
	g.add(client.Message{Schema: s, Batch: api.Batch{Rows: 3, Cols: []any{
		[]uint64{5, 6, 7}, []int32{-1, 0, 1}, []int32{-1, 4, -1}, []int32{9, 4, 9}, values,
	}}})
	return g
}

func TestPreviewsAreLeftOut(t *testing.T) {
	want := images{
		n: 2, h: 2, w: 1, c: 1, pixels: []uint8{10, 20, 50, 60}, labels: []int32{-1, 1}, seeds: []uint64{5, 7},
		nfe: 9,
	}
	got := sampled(1, []uint8{10, 20, 30, 40, 50, 60})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(images{})); diff != "" {
		t.Errorf("final rows differ (-want +got):\n%s", diff)
	}
}

func TestPNGGrid(t *testing.T) {
	pixels := make([]uint8, 18)
	for i := range pixels {
		pixels[i] = uint8(10 * (i + 1))
	}
	var file bytes.Buffer
	if err := sampled(3, pixels).writePNG(&file, 2, 2); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	// Two cells of 2×4 pixels with lines of one pixel around them.
	if b := img.Bounds(); b.Dx() != 7 || b.Dy() != 6 {
		t.Fatalf("picture of %d×%d, want 7×6", b.Dx(), b.Dy())
	}
	for at, want := range map[[2]int][3]uint32{
		{0, 0}: {255, 255, 255}, {3, 3}: {255, 255, 255},
		{1, 1}: {10, 20, 30}, {2, 2}: {10, 20, 30}, {1, 3}: {40, 50, 60},
		{4, 1}: {130, 140, 150}, {5, 4}: {160, 170, 180},
	} {
		r, g, b, _ := img.At(at[0], at[1]).RGBA()
		if got := [3]uint32{r >> 8, g >> 8, b >> 8}; got != want {
			t.Errorf("pixel %v is %v, want %v", at, got, want)
		}
	}
	if err := sampled(2, make([]uint8, 12)).writePNG(io.Discard, 0, 0); err == nil {
		t.Error("two channels were drawn")
	}
}

// TestWriteFileIsWholeOrNothing: an error leaves the old file as it was, and no other.
func TestWriteFileIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path, stop := filepath.Join(dir, "file"), errors.New("stop")
	text := func(content string, end error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return errors.Join(err, end)
		}
	}
	if err := command.WriteFile(path, text("old", nil)); err != nil {
		t.Fatal(err)
	}
	if err := command.WriteFile(path, text("new", stop)); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "old" {
		t.Errorf("file holds %q (%v), want the old content", content, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files in the folder (%v), want 1", len(entries), err)
	}
}

// TestFieldsInFiles: an .npz has data in their own units as they are; a PNG maps each channel's minimum to 0 and its
// maximum to 255.
func TestFieldsInFiles(t *testing.T) {
	got := sampled(1, []float32{280, 290, 0, 0, 300, 270})
	var file bytes.Buffer
	if err := got.writeNPZ(&file); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	stored := npytest.ReadNPZ(t, path)
	want := []float32{280, 290, 300, 270}
	if images := stored["images"]; !slices.Equal(images.Values.([]float32), want) ||
		!slices.Equal(images.Shape, []int{2, 2, 1, 1}) {
		t.Errorf("stored %v", images)
	}
	if !slices.Equal(stored["labels"].Values.([]int32), []int32{-1, 1}) ||
		!slices.Equal(stored["seeds"].Values.([]uint64), []uint64{5, 7}) {
		t.Errorf("stored %v and %v", stored["labels"], stored["seeds"])
	}
	if bytes := toBytes(want, 1); !slices.Equal(bytes, []uint8{85, 170, 255, 0}) {
		t.Errorf("a picture of %v", bytes)
	}
	if bytes := toBytes([]float32{1, 5, 1, 7}, 2); !slices.Equal(bytes, []uint8{0, 0, 0, 255}) {
		t.Errorf("by channel %v", bytes)
	}
	if err := got.writePNG(io.Discard, 0, 0); err != nil {
		t.Error(err)
	}
}
