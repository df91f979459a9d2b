package atomicdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written is a folder of two files, one of them mended.
func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	err := Write(path, false, func(f *Folder) error {
		if err := f.WriteFile("a", []byte("abc")); err != nil {
			return err
		}
		file, err := f.Create("b")
		if err != nil {
			return err
		}
		_, err = file.Write(append([]byte("???"), make([]byte, 1<<16)...))
		_, again := file.WriteAt([]byte("abc"), 0)
		return errors.Join(err, again, file.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestManifest pins the manifest; the hashes are those of sha256sum.
func TestManifest(t *testing.T) {
	got, err := os.ReadFile(filepath.Join(written(t), ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "format": "anisoflight-manifest",
  "version": 1,
  "files": {
    "a": {
      "size": 3,
      "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    },
    "b": {
      "size": 65539,
      "sha256": "fed3ecc0eef4b2a97d944719908e502878ed2545170c129cf152f85860cac45b"
    }
  },
  "sha256": "42cccf5c0d224678a044e64440f702f06d5c22e5888808b1eff9b5a96ae1244c"
}
`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}

// faults reads the folder in every way, and returns the files that each finds at fault.
func faults(t *testing.T, path string) (read, checked []string) {
	t.Helper()
	name := func(err error) string {
		var damage *DamageError
		if !errors.As(err, &damage) {
			t.Errorf("%v is no *DamageError", err)
			return ""
		}
		return damage.File
	}
	err := Read(path, func(s *Stored) error {
		for _, file := range []string{"a", "b", "c"} {
			if _, err := s.ReadFile(file); err != nil && !(file == "c" && errors.Is(err, fs.ErrNotExist)) {
				read = append(read, name(err))
			}
		}
		for _, err := range s.CheckAll(t.Context()) {
			checked = append(checked, name(err))
		}
		return nil
	})
	if err != nil {
		return []string{name(err)}, []string{name(err)}
	}
	return read, checked
}

// TestEveryDamageIsNamed flips a bit of each byte and cuts at each length of a small file and of the manifest, removes
// them, and adds a file.
func TestEveryDamageIsNamed(t *testing.T) {
	path := written(t)
	if read, checked := faults(t, path); len(read)+len(checked) > 0 {
		t.Fatalf("a whole folder is found at fault: %v, %v", read, checked)
	}
	expect := func(what, file string) {
		t.Helper()
		read, checked := faults(t, path)
		for _, got := range [][]string{read, checked} {
			if len(got) != 1 || got[0] != file {
				t.Errorf("%s of %s: at fault are %q", what, file, got)
			}
		}
	}
	for _, file := range []string{"a", ManifestFile} {
		place := filepath.Join(path, file)
		whole, err := os.ReadFile(place)
		if err != nil {
			t.Fatal(err)
		}
		write := func(b []byte) {
			t.Helper()
			if err := os.WriteFile(place, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for i := range whole {
			b := []byte(string(whole))
			b[i] ^= 1 << (i % 8)
			write(b)
			expect("a flipped bit", file)
		}
		for n := range whole {
			write(whole[:n])
			expect("a truncation", file)
		}
		write(append(whole, ' '))
		expect("an added byte", file)
		write(whole)
	}
	if err := os.Rename(filepath.Join(path, "b"), filepath.Join(path, "c")); err != nil {
		t.Fatal(err)
	}
	if read, checked := faults(t, path); strings.Join(read, " ") != "b c" || strings.Join(checked, " ") != "b" {
		t.Errorf("a renamed file: at fault are %q, %q", read, checked)
	}
	if err := os.Remove(filepath.Join(path, ManifestFile)); err != nil {
		t.Fatal(err)
	}
	err := Read(path, func(s *Stored) error {
		if _, err := s.ReadFile("c"); err != nil || s.HasManifest() {
			t.Errorf("without a manifest: %v", err)
		}
		if _, err := s.ReadFile("b"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without a manifest, a file that is not there: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadSeesOneFolder: a folder that is replaced while it is read is read again, and is not damaged.
func TestReadSeesOneFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := Write(path, false, fillWith("one")); err != nil {
		t.Fatal(err)
	}
	var got string
	err := Read(path, func(s *Stored) error {
		if got == "" {
			got = "replaced"
			if err := Write(path, true, fillWith("three")); err != nil {
				t.Fatal(err)
			}
		}
		b, err := s.ReadFile("file")
		if err == nil {
			got = string(b)
		}
		return err
	})
	if err != nil || got != "three" {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestFileRules: a folder's files have plain names, once each, and are closed before it ends.
func TestFileRules(t *testing.T) {
	f, err := Begin(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, ManifestFile} {
		if err := f.WriteFile(name, nil); err == nil {
			t.Errorf("a file is called %q", name)
		}
	}
	file, err := f.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("a", nil); err == nil {
		t.Error("a name is used twice")
	}
	if _, err := file.WriteAt([]byte("x"), 0); err == nil {
		t.Error("bytes that are not there are mended")
	}
	if err := f.Commit(false); err == nil {
		t.Error("a folder is committed with an open file")
	}
}

func FuzzDecodeManifest(f *testing.F) {
	for _, files := range []Manifest{{}, {"a": {3, hashOf([]byte("abc"))}, "b": {0, hashOf(nil)}}} {
		text, err := files.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"format":"anisoflight-manifest","version":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := DecodeManifest(text)
		if err != nil {
			var damage *DamageError
			if !errors.As(err, &damage) || damage.File != ManifestFile {
				t.Fatalf("%v does not name the manifest", err)
			}
			return
		}
		if own, err := m.Encode(); err != nil || string(own) != string(text) {
			t.Fatalf("a second encoding is taken: %s", text)
		}
	})
}
