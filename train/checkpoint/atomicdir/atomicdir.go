package atomicdir

import (
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
