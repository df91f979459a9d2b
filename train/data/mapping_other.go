//go:build !unix

package data

import (
	"io"
	"os"
)

// mapFile reads a file into memory, since the system may not be able to map it.
func mapFile(f *os.File, size int64) (*mapped, error) {
	m := &mapped{bytes: make([]byte, size)}
	_, err := io.ReadFull(io.NewSectionReader(f, 0, size), m.bytes)
	return m, err
}
