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

func (c *crashing) WriteFile(path string, data []byte) error {
	return c.do("write", []string{path}, func() error { return c.host.WriteFile(path, data) })
}

func (c *crashing) Create(path string) (file *os.File, err error) {
	err = c.do("write", []string{path}, func() error { file, err = c.host.Create(path); return err })
	return file, err
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

func fillTwo(text string) func(*Folder) error {
	return func(f *Folder) error {
		return errors.Join(f.WriteFile("a", []byte(text)), f.WriteFile("b", []byte(text)))
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
			"mkdirtemp", "mkdir tmp/new", "write tmp/new/a", "write tmp/new/b", "write tmp/new/manifest.json",
			"sync tmp/new", "sync tmp/new/a", "sync tmp/new/b",
			"sync tmp/new/manifest.json", move, "sync .", "remove tmp",
		}
		if !slices.Equal(c.log, want) {
			t.Errorf("did %q, want %q", c.log, want)
		}
	}
}

// keeping is write in place of what is at path, which is kept at path.previous.
func keeping(c *crashing, path string, fill func(*Folder) error) error {
	f, err := begin(c, path)
	if err != nil {
		return err
	}
	f.keep = path + ".previous"
	if err := fill(f); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit(true)
}

// TestCrashPointsOfKeeping: at every step there is a whole folder at its place, and a whole one of earlier beside it.
func TestCrashPointsOfKeeping(t *testing.T) {
	for stop := 0; ; stop++ {
		root := t.TempDir()
		path := filepath.Join(root, "x")
		for _, text := range []string{"one", "two"} {
			if err := WriteKeeping(path, path+".previous", fillTwo(text)); err != nil {
				t.Fatal(err)
			}
		}
		if got := state(t, path) + " after " + state(t, path+".previous"); got != "two after one" {
			t.Fatalf("it begins with %s", got)
		}
		c := &crashing{root: root, left: stop}
		err := keeping(c, path, fillTwo("three"))
		got := state(t, path) + " after " + state(t, path+".previous")
		switch got {
		case "two after one", "three after one", "three after two":
		default:
			t.Errorf("stop %d after %v: %s", stop, c.log, got)
		}
		if err == nil {
			if got != "three after two" {
				t.Errorf("written: %s", got)
			}
			return
		}
		if !errors.Is(err, errCrash) {
			t.Fatalf("stop %d: %v", stop, err)
		}
		if err := Sweep(root); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) != 2 {
			t.Errorf("stop %d: after the sweep there are %v, %v", stop, left, err)
		}
	}
}

// TestCrashPointsOfFiles: a file is replaced and removed, and a folder is removed, in one step.
func TestCrashPointsOfFiles(t *testing.T) {
	for name, act := range map[string]func(c *crashing, path string) error{
		"write":  func(c *crashing, path string) error { return writeFile(c, path, []byte("new")) },
		"remove": func(c *crashing, path string) error { return remove(c, path) },
	} {
		want := map[string]string{"write": "new", "remove": "none"}[name]
		for stop := 0; ; stop++ {
			root := t.TempDir()
			path := filepath.Join(root, "file")
			if err := WriteFile(path, []byte("old")); err != nil {
				t.Fatal(err)
			}
			c := &crashing{root: root, left: stop}
			err := act(c, path)
			if got := content(t, root); got != "old" && got != want {
				t.Errorf("%s, stop %d after %v: the file is %s", name, stop, c.log, got)
			} else if err == nil && got != want {
				t.Errorf("%s: done, and the file is %s", name, got)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatalf("%s, stop %d: %v", name, stop, err)
			}
		}
	}
}
