package atomicdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Effect is a change of the file system before it is made.
type Effect struct {
	Name string // mkdir, create, write, sync, rename, exchange, remove, or free (a query)
	Path string
}

// before is called with each effect.
var before atomic.Pointer[func(Effect) error]

// Intercept calls f before every effect of this process until restore; if f fails, the effect fails with its error.
// Tests simulate a full disk or a crash with it.
func Intercept(f func(Effect) error) (restore func()) {
	last := before.Swap(&f)
	return func() { before.Store(last) }
}

// about calls the interceptor.
func about(name, path string) error {
	if f := before.Load(); f != nil {
		return (*f)(Effect{name, path})
	}
	return nil
}

// perform calls effect unless the interceptor returns an error.
func perform(name, path string, effect func() error) error {
	if err := about(name, path); err != nil {
		return err
	}
	return effect()
}

// create begins a new file, to be written and read.
func create(path string) (file *os.File, err error) {
	err = perform("create", path, func() (err error) {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		return err
	})
	return file, err
}

func writeNew(path string, data []byte) error {
	file, err := create(path)
	if err != nil {
		return err
	}
	err = perform("write", path, func() error { _, err := file.Write(data); return err })
	return errors.Join(err, file.Close())
}

func rename(from, to string) error {
	return perform("rename", to, func() error { return os.Rename(from, to) })
}

// exchange swaps two folders in one step, or in two if the file system cannot.
func exchange(a, b string) error {
	return perform("exchange", b, func() error {
		err := swap(a, b)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
			return exchangeByTwo(a, b)
		}
		return err
	})
}

// removeAll removes a folder file by file, so that each can be intercepted.
func removeAll(path string) error {
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return perform("remove", file, func() error { return os.Remove(file) })
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return perform("remove", path, func() error { return os.RemoveAll(path) })
}

// sync flushes a file or a folder.
func sync(path string) error {
	return perform("sync", path, func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}

// exchangeByTwo swaps a and b by way of a third name: for a moment there is nothing at b.
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

// Free returns the number of free bytes of the file system of path.
func Free(path string) (int64, error) {
	if err := about("free", path); err != nil {
		return 0, err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// lock locks a folder until unlock, or the end of the process.
func lock(path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	return func() { _ = f.Close() }, nil
}
