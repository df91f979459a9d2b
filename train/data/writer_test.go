package data

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"unsafe"
)

// TestWriter: a data set comes back as it was, with its hash, whether its images are written one by one or at once.
func TestWriter(t *testing.T) {
	for name, im := range map[string]Images{
		"bytes": {
			Height: 2, Width: 3, Channels: 1, Uint8: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
			Labels: []int32{4, -1},
		},
		"floats":    {Height: 2, Width: 1, Channels: 1, Layout: CHW, Float32: []float32{0.5, -1, 1, 0.25}},
		"unbounded": {Height: 1, Width: 1, Channels: 1, Unbounded: true, Float32: []float32{3, -7}, Labels: []int32{0, 2}},
	} {
		want := mustNew(t, im)
		path := filepath.Join(t.TempDir(), name)
		w, err := Create(path, want.Form(), 0)
		if err != nil {
			t.Fatal(err)
		}
		n := want.Pixels()
		for i := range want.Len() {
			var labels []int32
			if want.HasLabels() {
				labels = []int32{want.Label(i)}
			}
			if want.IsFloat() {
				err = w.Float32(im.Float32[i*n:(i+1)*n], labels)
			} else {
				err = w.Uint8(im.Uint8[i*n:(i+1)*n], labels)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(false); err != nil {
			t.Fatal(err)
		}
		got := open(t, path)
		if err := got.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if err := save(path, want, false); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: an existing folder: %v", name, err)
		}
		if err := save(path, want, true); err != nil {
			t.Fatal(err)
		}
		counted := open(t, path) // whose number of images was known from the first
		if err := counted.Check(t.Context()); err != nil || counted.file.fileHash != got.file.fileHash {
			t.Errorf("%s: written as %s with their number known, %s without (%v)", name, counted.file.fileHash,
				got.file.fileHash, err)
		}
		if !reflect.DeepEqual(got.images, want.images) || got.Hash() != want.Hash() || got.computeHash() != want.Hash() ||
			got.Form() != want.Form() || got.Classes() != want.Classes() {
			t.Errorf("%s: hash %s, computed %s, want %s", name, got.Hash(), got.computeHash(), want.Hash())
		}
		if _, err := Create(filepath.Join(path, "absent", "x"), want.Form(), 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: no folder around it: %v", name, err)
		}
		if _, err := Load(filepath.Join(path, "absent")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: no folder: %v", name, err)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	dir := t.TempDir()
	bytes := Form{Height: 1, Width: 2, Channels: 1}
	labelled := Form{Height: 1, Width: 2, Channels: 1, Float: true, Labels: true}
	for name, c := range map[string]struct {
		form Form
		add  func(w *Writer) error
		row  int
	}{
		"floats among bytes": {bytes, func(w *Writer) error { return w.Float32([]float32{0, 0}, nil) }, 1},
		"part of an image":   {bytes, func(w *Writer) error { return w.Uint8(make([]uint8, 3), nil) }, -1},
		"labels":             {bytes, func(w *Writer) error { return w.Uint8(make([]uint8, 2), []int32{1}) }, -1},
		"no labels":          {labelled, func(w *Writer) error { return w.Float32([]float32{0, 0}, nil) }, -1},
		"label":              {labelled, func(w *Writer) error { return w.Float32([]float32{0, 0}, []int32{-2}) }, 1},
		"value":              {labelled, func(w *Writer) error { return w.Float32([]float32{0, 0, 0, 2}, []int32{0, 0}) }, 2},
	} {
		w, err := Create(filepath.Join(dir, "x"), c.form, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c.form.Float {
			err = w.Float32([]float32{0, 0}, []int32{0})
		} else {
			err = w.Uint8([]uint8{0, 0}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		var e *Error
		if err := c.add(w); !errors.As(err, &e) || e.Row != c.row {
			t.Errorf("%s: %v, want an error about row %d", name, err, c.row)
		}
		w.Abort()
		w.Abort()
	}
	w, err := Create(filepath.Join(dir, "x"), bytes, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(false); err == nil {
		t.Error("a data set of nothing is stored")
	}
	if w, err = Create(filepath.Join(dir, "x"), bytes, 2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Uint8(make([]uint8, 2), nil), w.Commit(false)); err == nil {
		t.Error("one image is stored for two")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := Create(filepath.Join(dir, "x"), Form{}, 0); err == nil {
		t.Error("images of no size have a form")
	}
}

// TestLargerThanTheHeap: a data set of 48 MiB is written, loaded and visited by an order with a few MiB of heap; and
// stays what it was where another replaces it.
func TestLargerThanTheHeap(t *testing.T) {
	const side, n = 64, 4 << 10
	dir := filepath.Join(t.TempDir(), "big")
	before := heap()
	w, err := Create(dir, Form{Height: side, Width: side, Channels: 3, Labels: true}, n)
	if err != nil {
		t.Fatal(err)
	}
	image := make([]uint8, side*side*3)
	for i := range n {
		for k := range 8 {
			image[k] = uint8(i >> k)
		}
		if err := w.Uint8(image, []int32{int32(i % 10)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(false); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	if unsafe.Sizeof(image[0])*uintptr(len(image))*n != 48<<20 || d.Len() != n || d.Classes() != 10 {
		t.Fatalf("%d images", d.Len())
	}
	if err := save(dir, mustNew(t, Images{Height: 1, Width: 1, Channels: 1, Uint8: []uint8{1}}), true); err != nil {
		t.Fatal(err)
	}
	o := NewOrder(1, n, true)
	images, labels := make([]float32, 64*len(image)), make([]int32, 64)
	for p := uint64(0); p < n; p += 64 {
		if err := o.Batch(d, p, images, labels); err != nil {
			t.Fatal(err)
		}
		first, _ := o.At(p)
		if labels[0] != int32(first%10) {
			t.Fatalf("image %d has label %d", first, labels[0])
		}
	}
	if used := heap() - before; used > 8<<20 {
		t.Errorf("%d MiB of heap for 48 MiB of images", used>>20)
	}
	runtime.KeepAlive(images)
}

// heap returns the bytes of live objects.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestRowsOutliveTheDataset: rows that were handed out are the caller's, though the file that they lay in is unmapped.
func TestRowsOutliveTheDataset(t *testing.T) {
	d, _ := reopened(t, Images{Height: 1, Width: 4, Channels: 1, Uint8: []uint8{1, 2, 3, 4, 5, 6, 7, 8}})
	unmapped := make(chan struct{})
	runtime.AddCleanup(d.file, func(c chan struct{}) { close(c) }, unmapped)
	rows, err := d.Uint8(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(d)
	for gone := false; !gone; {
		runtime.GC()
		select {
		case <-unmapped:
			gone = true
		default:
		}
	}
	if !slices.Equal(rows, []uint8{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("rows %v", rows)
	}
}
