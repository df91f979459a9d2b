package source

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// store converts a source to a stored data set.
func store(t *testing.T, s *Source, dir string) *data.Dataset {
	t.Helper()
	var w *data.Writer
	_, err := Convert(context.Background(), s, Settings{}, func(f data.Form) (_ Sink, err error) {
		w, err = data.Create(dir, f)
		return Stored{w}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(false); err != nil {
		t.Fatal(err)
	}
	d, err := data.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestInspect: counts and moments are those of the pixels, and the hash is that of the data
// set that converting makes.
func TestInspect(t *testing.T) {
	files := map[string][]byte{"bad.png": []byte("no image")}
	for i := range 6 {
		files[fmt.Sprintf("c%d/%d.png", i%2, i)] = plain(t, 3, 4, grey(uint8(51*(i%2))))
	}
	delete(files, "bad.png")
	dir := folderOf(t, files)
	s := mustOpen(t, dir, Auto)
	r, err := Inspect(context.Background(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Images != 6 || r.NBad != 0 || !slices.Equal(r.Sizes, []Size{{3, 4, 3, 6}}) || r.DType != "uint8" {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(r.Classes, []Class{{0, "c0", 3}, {1, "c1", 3}}) {
		t.Errorf("classes %v", r.Classes)
	}
	for c := range 3 { // values −1 and −0.6
		if diff := r.Mean[c] + 0.8; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("mean %v", r.Mean)
		}
		if diff := r.Std[c] - 0.2; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("std %v", r.Std)
		}
	}
	if d := store(t, mustOpen(t, dir, Auto), filepath.Join(t.TempDir(), "d")); d.Hash() != r.Hash || d.Classes() != 2 {
		t.Errorf("stored with the hash %s, inspected %s", d.Hash(), r.Hash)
	}
	if err := os.WriteFile(filepath.Join(dir, "c0", "bad.png"), []byte("no image"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err = Inspect(context.Background(), mustOpen(t, dir, Auto), nil); err != nil || r.NBad != 1 || r.Bad[0].Name != "c0/bad.png" || r.Images != 6 || r.Hash != "" {
		t.Errorf("with a bad file: %v, %+v", err, r)
	}
}

// TestOrder: many images, decoded at different speeds, come in the order of their names.
func TestOrder(t *testing.T) {
	files := map[string][]byte{}
	for i := range 200 {
		side := 1 + 40*(i%3)
		files[fmt.Sprintf("%03d.png", i)] = plain(t, side, side, grey(uint8(i)))
	}
	got, sum, err := read(t, mustOpen(t, folderOf(t, files), Auto), Settings{Height: 2, Width: 2})
	if err != nil || sum.Images != 200 {
		t.Fatal(err, sum)
	}
	for i, p := range got.pictures {
		if p.Uint8[0] != uint8(i) {
			t.Fatalf("image %d is that of %d", i, p.Uint8[0])
		}
	}
}

// TestSettings: resolution, transform, channels; small images are left out.
func TestSettings(t *testing.T) {
	dir := folderOf(t, map[string][]byte{"a.png": plain(t, 30, 40, grey(100)), "b.png": plain(t, 10, 20, grey(50))})
	got, sum, err := read(t, mustOpen(t, dir, Auto), Settings{Height: 24, Width: 32, Transform: "center-crop-wide", Channels: 1})
	if err != nil || sum.Images != 1 || sum.LeftOut != 1 {
		t.Fatal(err, sum)
	}
	if got.form != (data.Form{Height: 32, Width: 32, Channels: 1}) || got.pictures[0].Uint8[0] != 0 || got.pictures[0].Uint8[16*32] != 100 {
		t.Errorf("form %+v", got.form)
	}
	for name, set := range map[string]Settings{
		"channels":         {Channels: 2},
		"height alone":     {Height: 3},
		"transform alone":  {Transform: "center-crop"},
		"no such":          {Transform: "center", Height: 2, Width: 2},
		"oblong dhariwal":  {Transform: "center-crop-dhariwal", Height: 2, Width: 3},
		"tall wide images": {Transform: "center-crop-wide", Height: 3, Width: 2},
		"huge":             {Height: 1 << 20, Width: 1 << 20},
	} {
		if set.Check() == nil {
			t.Errorf("%s: %+v is taken", name, set)
		}
	}
}

// TestGrey: grey from colour is Pillow's, (19595·R + 38470·G + 7471·B + 2¹⁵)/2¹⁶.
func TestGrey(t *testing.T) {
	p := Picture{Height: 1, Width: 3, Channels: 3, Uint8: []uint8{255, 0, 0, 0, 255, 0, 10, 20, 250}}
	if got := p.withChannels(1); !slices.Equal(got.Uint8, []uint8{76, 150, 43}) || got.Channels != 1 {
		t.Errorf("grey %v", got.Uint8)
	}
	if got := (Picture{Height: 1, Width: 2, Channels: 1, Uint8: []uint8{7, 8}}).withChannels(3); !slices.Equal(got.Uint8, []uint8{7, 7, 7, 8, 8, 8}) {
		t.Errorf("colour %v", got.Uint8)
	}
}

// TestSkipBad: bad images are told of and left out.
func TestSkipBad(t *testing.T) {
	dir := folderOf(t, map[string][]byte{"a.png": plain(t, 2, 2, grey(1)), "b.png": []byte("x"), "c.png": plain(t, 3, 2, grey(1)), "d.png": plain(t, 2, 2, grey(4))})
	var bad []string
	got, sum, err := read(t, mustOpen(t, dir, Auto), Settings{Bad: func(name string, _ error) { bad = append(bad, name) }})
	if err != nil || sum.Images != 2 || sum.Bad != 2 || got.pictures[1].Uint8[0] != 4 || !slices.Equal(bad, []string{"b.png", "c.png"}) {
		t.Errorf("%v, %+v, bad %v", err, sum, bad)
	}
}

// TestEDMZip: names, storage and labels are those of EDM's tool, and it reads back.
func TestEDMZip(t *testing.T) {
	s := mustOpen(t, "testdata/edm.zip", Auto)
	var out bytes.Buffer
	var z *EDMZip
	if _, err := Convert(context.Background(), s, Settings{}, func(f data.Form) (_ Sink, err error) { z, err = NewEDMZip(&out, f); return z, err }); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"00000/img00000000.png", "00000/img00000001.png", "00000/img00000002.png", "dataset.json"} {
		f := r.File[i]
		if f.Name != want || f.Method != zip.Store {
			t.Errorf("entry %d is %s by method %d", i, f.Name, f.Method)
		}
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if want == "dataset.json" {
			text, _ := io.ReadAll(content)
			if string(text) != `{"labels":[["00000/img00000000.png",2],["00000/img00000001.png",0],["00000/img00000002.png",1]]}` {
				t.Errorf("labels %s", text)
			}
		} else if cfg, err := png.DecodeConfig(content); err != nil || cfg.Width != 5 || cfg.Height != 4 {
			t.Errorf("%s: %v, %d×%d", want, err, cfg.Height, cfg.Width)
		}
	}
	want, _, _ := read(t, mustOpen(t, "testdata/edm.zip", Auto), Settings{})
	got, _, err := read(t, mustOpen(t, fileOf(t, "b.zip", out.Bytes()), Auto), Settings{})
	if err != nil || !slices.EqualFunc(got.pictures, want.pictures, func(a, b Picture) bool { return slices.Equal(a.Uint8, b.Uint8) }) || !slices.Equal(got.labels, want.labels) {
		t.Errorf("reads back as %v, labels %v", err, got.labels)
	}
	for name, form := range map[string]data.Form{"floats": {Height: 1, Width: 1, Channels: 3, Float: true}, "four channels": {Height: 1, Width: 1, Channels: 4}} {
		if _, err := NewEDMZip(io.Discard, form); err == nil {
			t.Errorf("%s become PNGs", name)
		}
	}
}

// TestCancel: a conversion that nobody wants any more ends.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	files := map[string][]byte{}
	for i := range 300 {
		files[fmt.Sprintf("%03d.png", i)] = plain(t, 2, 2, grey(1))
	}
	k := &kept{}
	_, err := Convert(ctx, mustOpen(t, folderOf(t, files), Auto), Settings{Progress: func(done, _ int) {
		if done == 10 {
			cancel()
		}
	}}, func(data.Form) (Sink, error) { return k, nil })
	if !errors.Is(err, context.Canceled) || len(k.pictures) > 20 {
		t.Errorf("%v after %d images", err, len(k.pictures))
	}
}
