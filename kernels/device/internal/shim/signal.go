//go:build cgo && linux

package shim

// #include "shim.h"
import "C"

import "unsafe"

// signal replaces the C library's for every library in this process. NVRTC, with which cuDNN compiles, replaces the
// handlers of SIGINT and SIGTERM for a while and then restores Go's without their flags. These would run on the stack
// of a goroutine, which ends the process. So handlers with SA_SIGINFO, which all of Go's have, stay.
//
//export signal
func signal(number C.int, handler unsafe.Pointer) unsafe.Pointer {
	return C.shim_signal(number, handler)
}
