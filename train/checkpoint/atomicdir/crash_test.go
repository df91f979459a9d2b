package atomicdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var errCrash = errors.New("the machine stopped")

// crashing is a system that stops at a step and never does anything again. It keeps a
// log of what it did, with paths relative to root.
type crashing struct {
	host
	root string
	left int // steps before the stop
	log  []string
}

func (c *crashing) do(what string, paths []string, f func() error) error {
	if c.left == 0 {
		return errCrash
	}
	c.left--
	for _, p := range paths {
		rel, err := filepath.Rel(c.root, p)
		if err != nil {
			return err
		}
		if first, rest, ok := strings.Cut(rel, string(filepath.Separator)); ok && strings.HasPrefix(first, Prefix) {
			rel = "tmp/" + rest
		} else if strings.HasPrefix(rel, Prefix) {
			rel = "tmp"
		}
		what += " " + rel
	}
	c.log = append(c.log, what)
	return f()
}

func (c *crashing) MkdirTemp(parent, pattern string) (dir string, err error) {
	err = c.do("mkdirtemp", nil, func() error { dir, err = c.host.MkdirTemp(parent, pattern); return err })
	return dir, err
}

func (c *crashing) Mkdir(path string) error {
	return c.do("mkdir", []string{path}, func() error { return c.host.Mkdir(path) })
}

func (c *crashing) Sync(path string) error {
	return c.do("sync", []string{path}, func() error { return c.host.Sync(path) })
}

func (c *crashing) Rename(a, b string) error {
	return c.do("rename", []string{a, b}, func() error { return c.host.Rename(a, b) })
}

func (c *crashing) Exchange(a, b string) error {
	return c.do("exchange", []string{a, b}, func() error { return c.host.Exchange(a, b) })
}

func (c *crashing) RemoveAll(path string) error {
	return c.do("remove", []string{path}, func() error { return c.host.RemoveAll(path) })
}

func fillTwo(text string) func(string) error {
	return func(dir string) error {
		return errors.Join(
			os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o644),
			os.WriteFile(filepath.Join(dir, "b"), []byte(text), 0o644))
	}
}

// state returns "none", or what both files of the folder say; "half" where they do not
// say the same.
func state(t *testing.T, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return "none"
	}
	a, errA := os.ReadFile(filepath.Join(path, "a"))
	b, errB := os.ReadFile(filepath.Join(path, "b"))
	if errA != nil || errB != nil || string(a) != string(b) {
		return "half"
	}
	return string(a)
}

// TestCrashPoints stops the machine at every step of a first write and of a
// replacement: what is visible is the old folder or the new one, and once Write has
// returned without an error it is the new one.
func TestCrashPoints(t *testing.T) {
	for _, before := range []string{"none", "old"} {
		for stop := 0; ; stop++ {
			root := t.TempDir()
			path := filepath.Join(root, "x")
			if before != "none" {
				if err := Write(path, false, fillTwo(before)); err != nil {
					t.Fatal(err)
				}
			}
			c := &crashing{root: root, left: stop}
			err := write(c, path, true, fillTwo("new"))
			got := state(t, path)
			if got != before && got != "new" {
				t.Errorf("stop %d after %v: the folder is %s", stop, c.log, got)
			}
			entries, readErr := os.ReadDir(root)
			if readErr != nil {
				t.Fatal(readErr)
			}
			for _, e := range entries {
				if e.Name() != "x" && !strings.HasPrefix(e.Name(), Prefix) {
					t.Errorf("stop %d: %s is visible", stop, e.Name())
				}
			}
			if err == nil {
				if got != "new" || len(entries) != 1 {
					t.Errorf("%s: written, but the folder is %s beside %d others", before, got, len(entries)-1)
				}
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatalf("stop %d: %v", stop, err)
			}
		}
	}
}

// TestNothingIsRenamedUnflushed pins the order of the steps: every file and its folder
// reach the disk before the folder gets its name, and the name before Write returns.
func TestNothingIsRenamedUnflushed(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "x")
	for _, move := range []string{"rename tmp/new x", "exchange tmp/new x"} {
		c := &crashing{root: root, left: -1}
		if err := write(c, path, true, fillTwo("new")); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"mkdirtemp", "mkdir tmp/new", "sync tmp/new", "sync tmp/new/a", "sync tmp/new/b", move, "sync .",
			"remove tmp",
		}
		if !slices.Equal(c.log, want) {
			t.Errorf("did %q, want %q", c.log, want)
		}
	}
}
