//go:build linux || darwin

package atomicdir

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Free returns the bytes that may still be written to the file system of path.
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

// lock takes hold of a folder until unlock, or the end of the process.
func lock(path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	return func() { _ = f.Close() }, nil
}
