//go:build linux || darwin

package atomicdir

import (
	"os"

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
