//go:build cgo && linux

package blocks

// #cgo LDFLAGS: -ldl
// #include "blocks.h"
import "C"

import "unsafe"

// Serve makes a library, a handle of dlopen's, take its large blocks from here and says whether it did. A library that
// is not understood keeps what it has.
func Serve(library unsafe.Pointer) bool { return C.blocks_serve(library) != 0 }

// Counts tells of the blocks of all libraries that are served.
type Counts struct {
	Used, Kept           int
	UsedBytes, KeptBytes int64
}

// Count returns the present counts.
func Count() Counts {
	n := C.blocks_count()
	return Counts{int(n.used), int(n.kept), int64(n.used_bytes), int64(n.kept_bytes)}
}
