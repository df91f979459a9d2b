package cli

import (
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// sampled are the rows of three images of 2×1 pixels, the second a preview.
func sampled(channels int) images {
	s := api.Schema{Columns: []api.Column{
		{Name: "seed", Type: api.Uint64},
		{Name: "label", Type: api.Int32},
		{Name: "step", Type: api.Int32},
		{Name: "nfe", Type: api.Int32},
		{Name: "sample", Type: api.Uint8, Kind: api.Tensor, Shape: []int{2, 1, channels}},
	}}
	pixels := make([]uint8, 3*2*channels)
	for i := range pixels {
		pixels[i] = uint8(10 * (i + 1))
	}
	var g images
	g.add(client.Message{Schema: s, Batch: api.Batch{Rows: 3, Cols: []any{
		[]uint64{5, 6, 7},
		[]int32{-1, 0, 1},
		[]int32{-1, 4, -1},
		[]int32{9, 4, 9},
		pixels,
	}}})
	return g
}

func TestPreviewsAreLeftOut(t *testing.T) {
	g := sampled(1)
	want := images{
		n: 2, h: 2, w: 1, c: 1, pixels: []uint8{10, 20, 50, 60}, labels: []int32{-1, 1}, seeds: []uint64{5, 7},
		nfe: 9,
	}
	if diff := cmp.Diff(want, g, cmp.AllowUnexported(images{})); diff != "" {
		t.Errorf("final rows differ (-want +got):\n%s", diff)
	}
}

func TestPNGGrid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grid.png")
	if err := writePNG(path, sampled(3), 2, 2); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
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
	if err := writePNG(path, sampled(2), 0, 0); err == nil {
		t.Error("two channels were drawn")
	}
}

// A file that could not be written leaves the old one, and nothing beside it.
func TestWriteFileIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := command.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w,
			"old")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	err := command.WriteFile(path, func(w io.Writer) error { _, _ = io.WriteString(w, "new"); return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "old" {
		t.Errorf("file holds %q (%v), want the old content", content, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files in the folder (%v), want 1", len(entries), err)
	}
}
