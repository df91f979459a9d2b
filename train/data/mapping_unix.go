//go:build unix

package data

import (
	"os"
	"runtime"
	"syscall"
)

// mapFile maps a file of size > 0 bytes.
func mapFile(f *os.File, size int64) (*mapped, error) {
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	m := &mapped{bytes: b}
	runtime.AddCleanup(m, func(b []byte) { _ = syscall.Munmap(b) }, b)
	return m, nil
}
