package data

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// stored is a folder of two images, with its files.
func stored(t *testing.T) (dir string, files map[string][]byte) {
	t.Helper()
	_, dir = reopened(t, Images{Height: 1, Width: 2, Channels: 1, Uint8: []uint8{0, 1, 2, 3}, Labels: []int32{0, 1}})
	files = map[string][]byte{}
	for _, name := range []string{imagesFile, labelsFile, headFile, atomicdir.ManifestFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	return dir, files
}

// whole loads a data set and reads all of it.
func whole(t *testing.T, dir string) error {
	t.Helper()
	d, err := Load(dir)
	if err == nil {
		err = d.Check(t.Context())
	}
	return err
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsNamed flips a bit of every fifth byte and cuts each file there; package atomicdir takes every byte.
func TestDamageIsNamed(t *testing.T) {
	dir, files := stored(t)
	named := func(what, file string) {
		t.Helper()
		var e *Error
		var damage *atomicdir.DamageError
		if err := whole(t, dir); !errors.As(err, &e) || e.File != file || !errors.As(err, &damage) {
			t.Errorf("%s of %s: %v", what, file, err)
		}
	}
	for name, b := range files {
		for i := 0; i < len(b); i += 5 {
			flipped := append([]byte(nil), b...)
			flipped[i] ^= 1 << (i % 8)
			write(t, dir, name, flipped)
			named("a flipped bit", name)
			write(t, dir, name, b[:i])
			named("a truncation", name)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if name == atomicdir.ManifestFile {
			if err := whole(t, dir); err != nil {
				t.Errorf("without a manifest: %v", err)
			}
		} else {
			named("the loss", name)
		}
		write(t, dir, name, b)
		if err := whole(t, dir); err != nil {
			t.Errorf("the whole folder: %v", err)
		}
	}
}

// TestDamageWithoutManifest: what is stored without one, such as by hand, is held to what it says of itself.
func TestDamageWithoutManifest(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"images cut short": func(dir string) error { return os.Truncate(filepath.Join(dir, imagesFile), 130) },
		"header cut short": func(dir string) error { return os.Truncate(filepath.Join(dir, imagesFile), 50) },
		"no images":        func(dir string) error { return os.Truncate(filepath.Join(dir, imagesFile), 0) },
		"labels cut short": func(dir string) error { return os.Truncate(filepath.Join(dir, labelsFile), 130) },
		"another head":     func(dir string) error { return os.WriteFile(Head(dir), []byte(`{"labels": null}`), 0o644) },
		"a pixel": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, imagesFile), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte{7}, 131)
			return errors.Join(err, f.Close())
		},
	} {
		dir, _ := stored(t)
		if err := errors.Join(os.Remove(filepath.Join(dir, atomicdir.ManifestFile)), damage(dir)); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if err := whole(t, dir); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCutShortUnderItsReader: images whose file is cut short while they lie in the address space are an error wherever
// they are read, not the end of the process.
func TestCutShortUnderItsReader(t *testing.T) {
	const n, size = 64, 64 * 64 * 3
	for _, float := range []bool{false, true} {
		im := Images{Height: 64, Width: 64, Channels: 3, Uint8: make([]uint8, n*size)}
		if float {
			im.Uint8, im.Float32 = nil, make([]float32, n*size)
		}
		_, dir := reopened(t, im)
		for name, read := range map[string]func(d *Dataset) error{
			"Image": func(d *Dataset) error { return d.Image(n-1, false, make([]float32, size)) },
			"Rows": func(d *Dataset) error {
				_, bytes := d.Uint8(0, n)
				_, floats := d.Float32(0, n)
				return errors.Join(bytes, floats)
			},
			"Batch": func(d *Dataset) error {
				return NewOrder(0, n, false).Batch(d, 0, make([]float32, n*size), make([]int32, n))
			},
			"Each": func(d *Dataset) error {
				return d.Each(t.Context(), nil, nil, func([]int32, []float64) error { return nil })
			},
			"Check": func(d *Dataset) error { return d.Check(t.Context()) },
		} {
			if err := read(open(t, dir)); err != nil {
				t.Fatal(err)
			}
			d := open(t, dir) // that has not been checked
			path := filepath.Join(dir, imagesFile)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 1000); err != nil {
				t.Fatal(err)
			}
			var damage *atomicdir.DamageError
			if err := read(d); !errors.As(err, &damage) || damage.Error()[:12] != "x/images.npy" {
				t.Errorf("%s, float %t: %v", name, float, err)
			}
			if done, err := d.Checked(); !done || err == nil {
				t.Errorf("%s, float %t: the damage is not noted", name, float)
			}
			write(t, dir, imagesFile, whole)
		}
	}
}
