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

// atEveryStep stops the machine at every step of act, each time in a new folder that prepare has filled, and calls
// check with what had been done by then. At last act ends without an error.
func atEveryStep(t *testing.T, prepare, act func(root string) error,
	check func(root string, done []string, ended bool),
) {
	t.Helper()
	for stop := 0; ; stop++ {
		root := t.TempDir()
		if err := prepare(root); err != nil {
			t.Fatal(err)
		}
		done, err := crash(t, root, stop, func() error { return act(root) })
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("stop %d: %v", stop, err)
		}
		check(root, done, err == nil)
		if err == nil {
			return
		}
	}
}

// TestCrashPoints stops the machine at every step of a first write and of a replacement: what is visible is the old
// folder or the new one, and once Write has returned without an error it is the new one.
func TestCrashPoints(t *testing.T) {
	write := func(text string) func(root string) error {
		return func(root string) error { return Write(filepath.Join(root, "x"), true, fillTwo(text)) }
	}
	for before, prepare := range map[string]func(root string) error{
		"none": func(string) error { return nil }, "old": write("old"),
	} {
		atEveryStep(t, prepare, write("new"), func(root string, done []string, ended bool) {
			got := state(t, filepath.Join(root, "x"))
			if got != "new" && (ended || got != before) {
				t.Errorf("%s: after %v the folder is %s", before, done, got)
			}
			entries, err := os.ReadDir(root)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Name() != "x" && (ended || !strings.HasPrefix(e.Name(), Prefix)) {
					t.Errorf("%s: after %v there is %s", before, done, e.Name())
				}
			}
		})
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
	write := func(root, text string) error {
		path := filepath.Join(root, "x")
		return WriteKeeping(path, path+".previous", fillTwo(text))
	}
	states := func(root string) string {
		path := filepath.Join(root, "x")
		return state(t, path) + " after " + state(t, path+".previous")
	}
	atEveryStep(t, func(root string) error {
		err := errors.Join(write(root, "one"), write(root, "two"))
		if got := states(root); got != "two after one" {
			t.Fatalf("it begins with %s", got)
		}
		return err
	}, func(root string) error { return write(root, "three") }, func(root string, done []string, ended bool) {
		switch got := states(root); {
		case got == "three after two", !ended && (got == "two after one" || got == "three after one"):
		default:
			t.Errorf("after %v: %s", done, got)
		}
		if err := Sweep(root); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) != 2 {
			t.Errorf("after %v and the sweep there are %v, %v", done, left, err)
		}
	})
}

// TestCrashPointsOfFiles: a file is replaced and removed, and a folder is removed, in one step.
func TestCrashPointsOfFiles(t *testing.T) {
	write := func(text string) func(root string) error {
		return func(root string) error { return WriteFile(filepath.Join(root, "file"), []byte(text)) }
	}
	remove := func(root string) error { return Remove(filepath.Join(root, "file")) }
	for want, act := range map[string]func(root string) error{"new": write("new"), "none": remove} {
		atEveryStep(t, write("old"), act, func(root string, done []string, ended bool) {
			if got := content(t, root); got != want && (ended || got != "old") {
				t.Errorf("after %v the file is %s, want %s", done, got, want)
			}
		})
	}
}
