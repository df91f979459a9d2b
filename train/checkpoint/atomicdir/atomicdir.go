package atomicdir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Prefix heads the names of folders that are on their way in or out.
const Prefix = ".tmp-"

// Write makes the folder path of the files that fill creates in it. Where path exists
// already Write replaces it or, without replace, answers an error that is [fs.ErrExist].
// An error of fill leaves everything as it was.
func Write(path string, replace bool, fill func(*Folder) error) error {
	return write(host{}, path, replace, fill)
}

func write(sys system, path string, replace bool, fill func(*Folder) error) error {
	f, err := begin(sys, path)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit(replace)
}

// Folder is a folder on its way to its place. It ends with one call of Commit or Abort.
type Folder struct {
	sys    system
	path   string           // its place
	keep   string           // where the folder that it replaces is kept; empty: nowhere
	hidden string           // holds the folder, and then what it replaces
	files  map[string]Entry // nil for a folder of parts
	unlock func()
}

// Begin is the first half of [Write], for a folder that fills over time.
func Begin(path string) (*Folder, error) { return begin(host{}, path) }

func begin(sys system, path string) (*Folder, error) {
	hidden, unlock, err := reserve(sys, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f := &Folder{sys: sys, path: path, hidden: hidden, files: map[string]Entry{}, unlock: unlock}
	if err := sys.Mkdir(f.dir()); err != nil {
		return nil, errors.Join(err, f.Abort())
	}
	return f, nil
}

// dir is where the folder is filled.
func (f *Folder) dir() string { return filepath.Join(f.hidden, "new") }

// Commit writes the manifest and moves the folder to its place, as [Write] does. Every file
// has been closed. After an error nothing of the folder is left.
func (f *Folder) Commit(replace bool) (err error) {
	defer func() {
		if rest := f.Abort(); err == nil {
			err = rest
		}
	}()
	if err := f.writeManifest(); err != nil {
		return err
	}
	if err := syncTree(f.sys, f.dir()); err != nil {
		return err
	}
	replaced, err := place(f.sys, f.dir(), f.path, replace)
	if err != nil {
		return err
	}
	if err := f.sys.Sync(filepath.Dir(f.path)); err != nil || !replaced || f.keep == "" {
		return err
	}
	if _, err := place(f.sys, f.dir(), f.keep, true); err != nil {
		return err
	}
	return f.sys.Sync(filepath.Dir(f.keep))
}

// Abort removes the folder where it is filled.
func (f *Folder) Abort() error {
	defer f.unlock()
	return f.sys.RemoveAll(f.hidden)
}

// place moves fresh to path. With replace, what stood at path, if anything did, ends up at fresh.
func place(sys system, fresh, path string, replace bool) (replaced bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		if !replace {
			return false, fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		return true, sys.Exchange(fresh, path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return false, sys.Rename(fresh, path)
}

// syncTree flushes every file of a folder, and the folder itself.
func syncTree(sys system, dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return sys.Sync(path)
	})
}

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

// errLocked is returned where another process holds the folder.
var errLocked = errors.New("the folder is in use")

// reserve makes a hidden folder in parent that no sweep removes before unlock.
func reserve(sys system, parent string) (hidden string, unlock func(), err error) {
	for {
		if hidden, err = sys.MkdirTemp(parent, Prefix+"*"); err != nil {
			return "", nil, err
		}
		unlock, err = lock(hidden)
		if err == nil {
			if _, err = os.Lstat(hidden); err == nil {
				return hidden, unlock, nil
			}
			unlock()
		}
		if !errors.Is(err, errLocked) && !errors.Is(err, fs.ErrNotExist) { // a sweep came between: once more
			return "", nil, errors.Join(err, sys.RemoveAll(hidden))
		}
	}
}

// Leftovers returns what crashes have left in the folder parent, which [Sweep] removes.
func Leftovers(parent string) (left []string, err error) {
	err = eachLeftover(parent, func(path string) error {
		left = append(left, path)
		return nil
	})
	return left, err
}

// Sweep removes what crashes have left in the folder parent. What a process, this one or
// another, is still filling stays.
func Sweep(parent string) error { return eachLeftover(parent, host{}.RemoveAll) }

// eachLeftover calls do with every leftover in a folder while it is locked.
func eachLeftover(parent string, do func(path string) error) error {
	left, err := filepath.Glob(filepath.Join(parent, Prefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		unlock, err := lock(path)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = do(path)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
