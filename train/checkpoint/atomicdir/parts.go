package atomicdir

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteKeeping is [Write] in place of the folder that stands at path, which takes the place of the one at previous. At
// every moment of it there is a whole folder at path, as far as there was one.
func WriteKeeping(path, previous string, fill func(*Folder) error) error {
	f, err := Begin(path)
	if err != nil {
		return err
	}
	f.keep = previous
	if err := fill(f); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit(true)
}

// Assemble makes the folder path, as [Write] does, of parts that change one by one later: fill makes them in the folder
// that it is given, by Write and [WriteFile]. It has no manifest of its own.
func Assemble(path string, replace bool, fill func(dir string) error) error {
	return Write(path, replace, func(f *Folder) error {
		f.files = nil
		return fill(f.dir())
	})
}

// Swap exchanges two folders of one parent, in one step where the system has one. Where there is no a, b takes its
// place.
func Swap(a, b string) error {
	move := host{}.Exchange
	if _, err := os.Lstat(a); errors.Is(err, fs.ErrNotExist) {
		move = func(a, b string) error { return host{}.Rename(b, a) }
	}
	if err := move(a, b); err != nil {
		return err
	}
	return host{}.Sync(filepath.Dir(a))
}

// WriteFile stores data as the file path, so that a reader, or a crash, sees the old file or the new one.
func WriteFile(path string, data []byte) error { return writeFile(host{}, path, data) }

func writeFile(sys system, path string, data []byte) (err error) {
	parent := filepath.Dir(path)
	hidden, unlock, err := reserve(sys, parent)
	if err != nil {
		return err
	}
	defer unlock()
	defer func() {
		if rest := sys.RemoveAll(hidden); err == nil {
			err = rest
		}
	}()
	fresh := filepath.Join(hidden, "new")
	if err := sys.WriteFile(fresh, data); err != nil {
		return err
	}
	if err := sys.Sync(fresh); err != nil {
		return err
	}
	if err := sys.Rename(fresh, path); err != nil {
		return err
	}
	return sys.Sync(parent)
}

// Remove deletes the file or folder at path: it disappears at once, under a hidden name, and then piece by piece.
// Where there is nothing it does nothing.
func Remove(path string) error { return remove(host{}, path) }

func remove(sys system, path string) error {
	unlock, err := lock(path) // so that no sweep is in the way
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	parent := filepath.Dir(path)
	hidden := filepath.Join(parent, Prefix+rand.Text()) // a full disk has no room for a folder around it
	if err := sys.Rename(path, hidden); err != nil {
		return err
	}
	return errors.Join(sys.Sync(parent), sys.RemoveAll(hidden))
}
