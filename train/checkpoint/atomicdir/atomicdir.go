// Package atomicdir makes folders appear whole or not at all.
//
// A folder is filled under a hidden name beside its place (".tmp-…"), every file in it
// is flushed to the disk, and it is then renamed into place; a folder that stood there
// before is exchanged for it in the same system call where the system has one. A crash
// leaves the old folder, or the new one, and at most a hidden leftover that [Prefix]
// names. The package imports nothing of the project. Begin at [Write].
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

// Write makes the folder path with what fill puts into the empty folder that it is
// given. Where path exists already Write replaces it or, without replace, answers an
// error that is [fs.ErrExist]. An error of fill leaves everything as it was.
func Write(path string, replace bool, fill func(dir string) error) error {
	return write(host{}, path, replace, fill)
}

func write(sys system, path string, replace bool, fill func(dir string) error) (err error) {
	parent := filepath.Dir(path)
	dir, err := sys.MkdirTemp(parent, Prefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if rest := sys.RemoveAll(dir); err == nil {
			err = rest
		}
	}()
	fresh := filepath.Join(dir, "new")
	if err := sys.Mkdir(fresh); err != nil {
		return err
	}
	if err := fill(fresh); err != nil {
		return err
	}
	if err := syncTree(sys, fresh); err != nil {
		return err
	}
	if err := place(sys, fresh, path, replace); err != nil {
		return err
	}
	return sys.Sync(parent)
}

// place moves fresh to path. With replace, what stood at path ends up at fresh.
func place(sys system, fresh, path string, replace bool) error {
	if _, err := os.Lstat(path); err == nil {
		if !replace {
			return fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		return sys.Exchange(fresh, path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return sys.Rename(fresh, path)
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
