// Package atomicdir makes folders that appear whole or not at all, and that tell when a file of theirs has changed.
//
// A folder is filled under a hidden name next to its place (".tmp-…"), flushed to the disk file by file, and renamed.
// An existing folder is exchanged for it, in one system call if the system has one. A crash leaves the old folder or
// the new one, and at most a hidden leftover, which [Sweep] removes. [WriteFile] does the same for a single file.
//
// Each folder carries a manifest of its files, hashed while they were written:
//
//	manifest.json   {"format": "anisoflight-manifest", "version": 1,
//	                 "files": {NAME: {"size": bytes, "sha256": hex}}, "sha256": of the list above in compact JSON}
//
// No file of a committed folder is ever changed. Reading a file of a folder with a manifest returns what was written,
// or a [*DamageError]. A folder without a manifest, made by hand, is read without checks.
//
// Every change of the file system goes through system.go, where tests intercept it. Begin at [Write] and [Read].
package atomicdir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Prefix begins the names of hidden folders.
const Prefix = ".tmp-"

// Write makes the folder path of the files that fill creates. It replaces an existing folder or, without replace,
// returns an error that wraps [fs.ErrExist]. If fill fails, nothing changes.
func Write(path string, replace bool, fill func(*Folder) error) error {
	return write(path, "", replace, fill)
}

// WriteKeeping is [Write] with replace; the folder that was at path replaces the one at previous. At every moment there
// is a whole folder at path if there was one before.
func WriteKeeping(path, previous string, fill func(*Folder) error) error {
	return write(path, previous, true, fill)
}

func write(path, previous string, replace bool, fill func(*Folder) error) error {
	f, err := Begin(path)
	if err != nil {
		return err
	}
	f.previous = previous
	if err := fill(f); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit(replace)
}

// Folder is a folder that is being filled. It ends with one call of Commit or Abort.
type Folder struct {
	path     string   // its place
	previous string   // the place for the folder that it replaces; empty for none
	hidden   string   // parent of the folder, and then of the one that it replaces
	files    Manifest // nil for a folder of parts
	unlock   func()
}

// Begin is the first half of [Write], for a folder that is filled over time.
func Begin(path string) (*Folder, error) {
	hidden, unlock, err := reserve(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f := &Folder{path: path, hidden: hidden, files: Manifest{}, unlock: unlock}
	if err := perform("mkdir", f.dir(), func() error { return os.Mkdir(f.dir(), 0o755) }); err != nil {
		return nil, errors.Join(err, f.Abort())
	}
	return f, nil
}

// dir is where the folder is filled.
func (f *Folder) dir() string { return filepath.Join(f.hidden, "new") }

// Commit writes the manifest and moves the folder to its place, as [Write] does. Every file must be closed. If it
// fails, the folder is removed.
func (f *Folder) Commit(replace bool) (err error) {
	defer func() {
		if rest := f.Abort(); err == nil {
			err = rest
		}
	}()
	if err := f.writeManifest(); err != nil {
		return err
	}
	if err := syncTree(f.dir()); err != nil {
		return err
	}
	replaced, err := place(f.dir(), f.path, replace)
	if err != nil {
		return err
	}
	if err := sync(filepath.Dir(f.path)); err != nil || !replaced || f.previous == "" {
		return err
	}
	if _, err := place(f.dir(), f.previous, true); err != nil {
		return err
	}
	return sync(filepath.Dir(f.previous))
}

// Abort removes the folder.
func (f *Folder) Abort() error {
	defer f.unlock()
	return removeAll(f.hidden)
}

// place moves fresh to path. With replace, an existing folder moves to fresh.
func place(fresh, path string, replace bool) (replaced bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		if !replace {
			return false, fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		return true, exchange(fresh, path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return false, rename(fresh, path)
}

// syncTree flushes every file of a folder, and the folder itself.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return sync(path)
	})
}

// Assemble makes the folder path, as [Write] does, of parts that may change one by one: fill makes them in dir, by
// Write and [WriteFile]. The folder has no manifest.
func Assemble(path string, replace bool, fill func(dir string) error) error {
	return Write(path, replace, func(f *Folder) error {
		f.files = nil
		return fill(f.dir())
	})
}

// Swap exchanges two folders of one parent, in one step if the system can. If a does not exist, b takes its place.
func Swap(a, b string) error {
	if _, err := place(b, a, true); err != nil {
		return err
	}
	return sync(filepath.Dir(a))
}

// WriteFile stores data as the file path. A reader, and a crash, sees the old file or the new one.
func WriteFile(path string, data []byte) (err error) {
	parent := filepath.Dir(path)
	hidden, unlock, err := reserve(parent)
	if err != nil {
		return err
	}
	defer unlock()
	defer func() {
		if rest := removeAll(hidden); err == nil {
			err = rest
		}
	}()
	fresh := filepath.Join(hidden, "new")
	if err := writeNew(fresh, data); err != nil {
		return err
	}
	if err := sync(fresh); err != nil {
		return err
	}
	if err := rename(fresh, path); err != nil {
		return err
	}
	return sync(parent)
}

// Remove deletes the file or folder at path, if it exists: it is renamed to a hidden name at once, and then removed.
func Remove(path string) error {
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
	if err := rename(path, hidden); err != nil {
		return err
	}
	return errors.Join(sync(parent), removeAll(hidden))
}

// errLocked is returned if another process has locked the folder.
var errLocked = errors.New("the folder is in use")

// reserve makes a hidden folder in parent that no sweep removes before unlock.
func reserve(parent string) (hidden string, unlock func(), err error) {
	for {
		err = perform("mkdir", parent, func() (err error) { hidden, err = os.MkdirTemp(parent, Prefix+"*"); return err })
		if err != nil {
			return "", nil, err
		}
		unlock, err = lock(hidden)
		if err == nil {
			if _, err = os.Lstat(hidden); err == nil {
				return hidden, unlock, nil
			}
			unlock()
		}
		if !errors.Is(err, errLocked) && !errors.Is(err, fs.ErrNotExist) { // else a sweep came between: retry
			return "", nil, errors.Join(err, removeAll(hidden))
		}
	}
}

// Leftovers returns the leftovers of crashes in the folder parent.
func Leftovers(parent string) (left []string, err error) {
	err = eachLeftover(parent, func(path string) error {
		left = append(left, path)
		return nil
	})
	return left, err
}

// Sweep removes the leftovers of crashes in the folder parent, except folders that a process is filling.
func Sweep(parent string) error { return eachLeftover(parent, removeAll) }

// eachLeftover locks every leftover in a folder and calls do with it.
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
