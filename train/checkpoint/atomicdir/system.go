package atomicdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// system is what this package does to the file system, so that a crash at any of its steps is
// a test.
type system interface {
	MkdirTemp(parent, pattern string) (string, error)
	Mkdir(path string) error
	WriteFile(path string, data []byte) error // a new file
	Create(path string) (*os.File, error)     // a new file, to be written and read
	Sync(path string) error                   // flush one file or folder
	Rename(from, to string) error
	Exchange(a, b string) error
	RemoveAll(path string) error
}

// Effect is something that is about to be done to the file system.
type Effect struct {
	Name string // mkdir, create, write, sync, rename, exchange, remove, or free: a question for the space left
	Path string
}

// before is called with each effect.
var before atomic.Pointer[func(Effect) error]

// Intercept has f called before every effect of this process on the file system, until restore; an error of f takes the
// effect's place. It is for tests: of a disk that is full, of a process that is killed here.
func Intercept(f func(Effect) error) (restore func()) {
	last := before.Swap(&f)
	return func() { before.Store(last) }
}

// about announces an effect.
func about(name, path string) error {
	if f := before.Load(); f != nil {
		return (*f)(Effect{name, path})
	}
	return nil
}

// host is the machine's own.
type host struct{}

func (host) MkdirTemp(parent, pattern string) (string, error) {
	if err := about("mkdir", parent); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, pattern)
}

func (host) Mkdir(path string) error {
	if err := about("mkdir", path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o755)
}

func (host) WriteFile(path string, data []byte) error {
	file, err := (host{}).Create(path)
	if err != nil {
		return err
	}
	if err = about("write", path); err == nil {
		_, err = file.Write(data)
	}
	return errors.Join(err, file.Close())
}

func (host) Create(path string) (*os.File, error) {
	if err := about("create", path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
}

func (host) Rename(from, to string) error {
	if err := about("rename", to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (host) Exchange(a, b string) error {
	if err := about("exchange", b); err != nil {
		return err
	}
	return exchange(a, b)
}

// RemoveAll removes a folder file by file, each with an announcement, and then what is left of it.
func (host) RemoveAll(path string) error {
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if err := about("remove", file); err != nil {
			return err
		}
		return os.Remove(file)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := about("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func (host) Sync(path string) error {
	if err := about("sync", path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// exchangeByTwo swaps a for b by way of a third name: for a moment there is nothing at b.
func exchangeByTwo(a, b string) error {
	old := a + ".old"
	if err := os.Rename(b, old); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		if back := os.Rename(old, b); back != nil {
			return back
		}
		return err
	}
	return os.Rename(old, a)
}
