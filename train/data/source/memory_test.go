package source

import (
	"archive/zip"
	"context"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// TestConvertsMoreThanItHolds: 48 MiB of images go from a zip to a stored data set through a
// few MiB of heap.
func TestConvertsMoreThanItHolds(t *testing.T) {
	const side, n = 128, 1024
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "big.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	content := encoded(t, image.NewNRGBA(image.Rect(0, 0, side, side)))
	for i := range n {
		w, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%04d.png", i), Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, f.Name(), Auto)
	before, most := heap(), int64(0)
	set := Settings{Progress: func(done, _ int) {
		if done%128 == 0 {
			most = max(most, heap()-before)
		}
	}}
	var w *data.Writer
	sum, err := Convert(context.Background(), s, set, func(form data.Form) (_ Sink, err error) {
		w, err = data.Create(filepath.Join(dir, "big"), form)
		return Stored{w}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(false); err != nil || sum.Images*side*side*3 != 48<<20 {
		t.Fatalf("%v, %d images", err, sum.Images)
	}
	if most > 12<<20 {
		t.Errorf("%d MiB of heap for 48 MiB of images", most>>20)
	}
}

// heap gives the bytes of live objects.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
