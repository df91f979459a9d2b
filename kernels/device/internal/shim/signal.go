//go:build cgo && linux

package shim

// #include "shim.h"
import "C"

import "unsafe"

// signal stands in for the C library's in every library that this process loads. While NVRTC compiles, for cuDNN, it
// has handlers of SIGINT and SIGTERM, and puts those of before back without their flags: Go's then run on the stack of
// a goroutine, and end the process. Handlers of sigaction, as all of Go's are, therefore stay.
//
//export signal
func signal(number C.int, handler unsafe.Pointer) unsafe.Pointer {
	return C.shim_signal(number, handler)
}
