package atomicdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// content returns what the folder's one file says, or "none".
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path, "file"))
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func fillWith(text string) func(*Folder) error {
	return func(f *Folder) error { return f.WriteFile("file", []byte(text)) }
}

func TestWrite(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "x")
	for _, step := range []struct {
		name    string
		replace bool
		fill    func(*Folder) error
		fails   bool
		want    string
	}{
		{"new", false, fillWith("one"), false, "one"},
		{"taken", false, fillWith("two"), true, "one"},
		{"replaced", true, fillWith("three"), false, "three"},
		{"failing half way", true, func(f *Folder) error {
			if err := fillWith("half")(f); err != nil {
				return err
			}
			return errors.New("disk full")
		}, true, "three"},
	} {
		err := Write(path, step.replace, step.fill)
		if (err != nil) != step.fails {
			t.Fatalf("%s: error %v", step.name, err)
		}
		if step.name == "taken" && !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v is not fs.ErrExist", step.name, err)
		}
		if got := content(t, path); got != step.want {
			t.Errorf("%s: folder holds %q, want %q", step.name, got, step.want)
		}
		entries, err := os.ReadDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != 1 {
			t.Errorf("%s: leftovers %v", step.name, entries)
		}
	}
}

func TestExchangeByTwo(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for path, text := range map[string]string{a: "new", b: "old"} {
		if err := Write(path, false, fillWith(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := exchangeByTwo(a, b); err != nil {
		t.Fatal(err)
	}
	if content(t, a) != "old" || content(t, b) != "new" {
		t.Errorf("a holds %q, b holds %q", content(t, a), content(t, b))
	}
}

// TestSweep: what a crash left goes, what is still being filled stays.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	left := filepath.Join(parent, Prefix+"left")
	if err := os.MkdirAll(filepath.Join(left, "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, Prefix+"file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Begin(filepath.Join(parent, "kept"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Sweep(parent); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 {
		t.Errorf("after the sweep: %v, %v", entries, err)
	}
	if err := f.Commit(false); err != nil {
		t.Fatal(err)
	}
	if entries, err = os.ReadDir(parent); err != nil || len(entries) != 1 || entries[0].Name() != "kept" {
		t.Errorf("after the commit: %v, %v", entries, err)
	}
}
