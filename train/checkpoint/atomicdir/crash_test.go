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

// crash lets a number of effects happen, and none after them, while do runs; −1 is no limit. It returns those that have
// happened, with paths relative to root.
func crash(t *testing.T, root string, steps int, do func() error) (effects []string, err error) {
	t.Helper()
	defer Intercept(func(e Effect) error {
		if len(effects) == steps {
			return errCrash
		}
		path, err := filepath.Rel(root, e.Path)
		if err != nil {
			return err
		}
		if hidden, rest, ok := strings.Cut(path, string(filepath.Separator)); strings.HasPrefix(hidden, Prefix) {
			if path = "tmp"; ok {
				path += "/" + rest
			}
		}
		effects = append(effects, e.Name+" "+path)
		return nil
	})()
	err = do()
	return effects, err
}

func fillTwo(text string) func(*Folder) error {
	return func(f *Folder) error {
		return errors.Join(f.WriteFile("a", []byte(text)), f.WriteFile("b", []byte(text)))
	}
}

// state returns "none", or what both files of the folder say; "half" where they do not say the same.
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

// TestCrashPoints stops the machine at every step of a first write and of a replacement: what is visible is the old
// folder or the new one, and once Write has returned without an error it is the new one.
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
			done, err := crash(t, root, stop, func() error { return Write(path, true, fillTwo("new")) })
			got := state(t, path)
			if got != before && got != "new" {
				t.Errorf("stop %d after %v: the folder is %s", stop, done, got)
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

// TestNothingIsRenamedUnflushed pins the order of the steps: every file and its folder reach the disk before the folder
// gets its name, and the name before Write returns.
func TestNothingIsRenamedUnflushed(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "x")
	for _, move := range []string{"rename x", "exchange x"} {
		done, err := crash(t, root, -1, func() error { return Write(path, true, fillTwo("new")) })
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"mkdir .", "mkdir tmp/new", "create tmp/new/a", "write tmp/new/a", "create tmp/new/b", "write tmp/new/b",
			"create tmp/new/manifest.json", "write tmp/new/manifest.json",
			"sync tmp/new", "sync tmp/new/a", "sync tmp/new/b", "sync tmp/new/manifest.json", move, "sync .",
		}
		if len(done) < len(want) || !slices.Equal(done[:len(want)], want) {
			t.Errorf("did %q, want %q", done, want)
		}
	}
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
		done, err := crash(t, root, stop, func() error {
			return WriteKeeping(path, path+".previous", fillTwo("three"))
		})
		got := state(t, path) + " after " + state(t, path+".previous")
		switch got {
		case "two after one", "three after one", "three after two":
		default:
			t.Errorf("stop %d after %v: %s", stop, done, got)
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
	for name, act := range map[string]func(path string) error{
		"write":  func(path string) error { return WriteFile(path, []byte("new")) },
		"remove": Remove,
	} {
		want := map[string]string{"write": "new", "remove": "none"}[name]
		for stop := 0; ; stop++ {
			root := t.TempDir()
			path := filepath.Join(root, "file")
			if err := WriteFile(path, []byte("old")); err != nil {
				t.Fatal(err)
			}
			done, err := crash(t, root, stop, func() error { return act(path) })
			if got := content(t, root); got != "old" && got != want {
				t.Errorf("%s, stop %d after %v: the file is %s", name, stop, done, got)
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
