//go:build cgo && linux

package blocks

// #cgo LDFLAGS: -ldl
// #include "blocks.h"
import "C"

import "unsafe"

// Serve makes a library, a handle of dlopen's, take its large blocks from here and says whether it did. A library that
// is not understood keeps what it has.
func Serve(library unsafe.Pointer) bool { return C.blocks_serve(library) != 0 }
