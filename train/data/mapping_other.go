//go:build !unix

package data

import (
	"io"
	"os"
)

// mapping is a file in memory, where the system cannot map it.
type mapping struct{ bytes []byte }

func mapFile(f *os.File, size int64) (*mapping, error) {
	m := &mapping{make([]byte, size)}
	_, err := io.ReadFull(io.NewSectionReader(f, 0, size), m.bytes)
	return m, err
}
