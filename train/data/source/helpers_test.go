package source

import (
	"archive/zip"
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// mustOpen opens a source for the length of the test.
func mustOpen(t *testing.T, path string, rule LabelRule) *Source {
	t.Helper()
	s, err := Open(path, rule)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// kept is a sink that keeps what it is given.
type kept struct {
	form     data.Form
	pictures []Picture
	labels   []int32
}

func (k *kept) Add(p Picture, label int32) error {
	k.pictures, k.labels = append(k.pictures, p), append(k.labels, label)
	return nil
}

// read converts all of a source.
func read(t *testing.T, s *Source, set Settings) (*kept, Summary, error) {
	t.Helper()
	k := &kept{}
	sum, err := Convert(context.Background(), s, set, func(f data.Form) (Sink, error) { k.form = f; return k, nil })
	return k, sum, err
}

// plain is a PNG of one colour.
func plain(t *testing.T, height, width int, c color.Color) []byte {
	t.Helper()
	im := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range height * width {
		im.Set(i%width, i/width, c)
	}
	return encoded(t, im)
}

func encoded(t *testing.T, im image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func grey(v uint8) color.Color { return color.NRGBA{v, v, v, 255} }

// folderOf writes files by their slash-separated names.
func folderOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// zipOf writes a zip of these files.
func zipOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		f, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, "a.zip", b.Bytes())
}

func fileOf(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
