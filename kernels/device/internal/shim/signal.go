//go:build cgo && linux

package shim

// #include "shim.h"
import "C"

import "unsafe"

// signal stands in for the C library's in every library that this process loads. NVRTC, with
// which cuDNN compiles, replaces the handlers of SIGINT and SIGTERM meanwhile and puts Go's back without their flags.
// They then run on the stack of a goroutine, which ends the process. So handlers with SA_SIGINFO stay, as all of Go's
// have it.
//
//export signal
func signal(number C.int, handler unsafe.Pointer) unsafe.Pointer {
	return C.shim_signal(number, handler)
}
