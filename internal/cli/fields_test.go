package cli

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/testing/npytest"
)

// TestFieldsInFiles: values in units of their own come into an .npz as they are, and into a PNG from their least to
// their greatest; previews are left out.
func TestFieldsInFiles(t *testing.T) {
	schema := api.Schema{Columns: []api.Column{
		{Name: "seed", Type: api.Uint64},
		{Name: "label", Type: api.Int32},
		{Name: "step", Type: api.Int32},
		{Name: "nfe", Type: api.Int32},
		{Name: "sample", Type: api.Float32, Kind: api.Tensor, Shape: []int{1, 2, 1}},
	}}
	var got images
	got.add(client.Message{Schema: schema, Batch: api.Batch{Rows: 3, Cols: []any{
		[]uint64{1, 1, 2},
		[]int32{-1, -1, -1},
		[]int32{0, -1, -1},
		[]int32{3, 3, 3},
		[]float32{0, 0, 280, 290, 300, 270},
	}}})
	want := []float32{280, 290, 300, 270}
	if got.n != 2 || !slices.Equal(got.values, want) || got.pixels != nil {
		t.Fatalf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "x.npz")
	if err := writeNPZ(file, got); err != nil {
		t.Fatal(err)
	}
	stored := npytest.ReadNPZ(t, file)
	if images := stored["images"]; !slices.Equal(images.Values.([]float32), want) ||
		!slices.Equal(images.Shape, []int{2, 1, 2, 1}) {
		t.Errorf("stored %v", images)
	}
	if !slices.Equal(stored["labels"].Values.([]int32), []int32{-1, -1}) ||
		!slices.Equal(stored["seeds"].Values.([]uint64), []uint64{1, 2}) {
		t.Errorf("stored %v and %v", stored["labels"], stored["seeds"])
	}
	if bytes := mapped(want, 1); !slices.Equal(bytes, []uint8{85, 170, 255, 0}) {
		t.Errorf("a picture of %v", bytes)
	}
	if bytes := mapped([]float32{1, 5, 1, 7}, 2); !slices.Equal(bytes, []uint8{0, 0, 0, 255}) {
		t.Errorf("by channel %v", bytes)
	}
	if err := writePNG(filepath.Join(t.TempDir(), "x.png"), got, 0, 0); err != nil {
		t.Error(err)
	}
}
