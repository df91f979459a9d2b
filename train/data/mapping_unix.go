//go:build unix

package data

import (
	"os"
	"runtime"
	"syscall"
)

// mapping is a file in the address space, read-only, for as long as it can be reached:
// whoever holds a part of bytes keeps the mapping, too. A file that is removed or replaced
// meanwhile stays what it was; one that is cut short would fault, so stored files are never
// changed.
type mapping struct{ bytes []byte }

func mapFile(f *os.File, size int64) (*mapping, error) {
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	m := &mapping{b}
	runtime.AddCleanup(m, func(b []byte) { _ = syscall.Munmap(b) }, b)
	return m, nil
}
