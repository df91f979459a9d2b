//go:build cgo && linux

package mpi

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "mpi.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/anisoflight/anisoflight/kernels/processes"
)

// Link is the processes of an MPI job. One process has one.
type Link struct{ rank, size int }

var _ processes.Link = (*Link)(nil)

// Open joins the processes that a launcher has started, by the library at path; if path is empty, it searches. Call it
// once per process.
func Open(path string) (*Link, error) {
	paths := candidates()
	if path != "" {
		paths = []string{path}
	}
	var refused error
	for _, path := range paths {
		c := C.CString(path)
		why := C.mpi_load(c)
		C.free(unsafe.Pointer(c))
		if why == nil {
			return start(path)
		}
		refused = errors.Join(refused, errors.New(C.GoString(why)))
	}
	return nil, fmt.Errorf("no MPI library with the standard ABI can be loaded; %s: %w", Advice, refused)
}

// start joins the job by a library that is loaded.
func start(path string) (*Link, error) {
	var rank, size C.int
	if code := C.mpi_start(&rank, &size); code != 0 {
		return nil, fmt.Errorf("%s cannot join the processes: %w", path, failure(code))
	}
	if size == 1 && Launched() {
		return nil, fmt.Errorf("%s finds this process alone, though a launcher has started several: take the mpiexec of the "+
			"same MPI (or --processes one)", path)
	}
	return &Link{int(rank), int(size)}, nil
}

// failure is the error of a code of MPI's, in the library's words.
func failure(code C.int) error {
	text := make([]byte, C.MPI_TEXT)
	C.mpi_text(code, (*C.char)(unsafe.Pointer(&text[0])))
	return fmt.Errorf("MPI: %s", C.GoString((*C.char)(unsafe.Pointer(&text[0]))))
}

// Place implements [processes.Link].
func (l *Link) Place() (rank, size int) { return l.rank, l.size }

// pinned is the memory that MPI uses until an exchange is done. After a failure it stays pinned.
var pinned runtime.Pinner

const (
	smallExchange = 1 << 16 // bytes of an exchange which may have to wait for a step of another process
	longestPause  = time.Millisecond
	shortestPause = 20 * time.Microsecond
)

// Exchange implements [processes.Link]. It polls with growing pauses, so that waiting takes no processor time from the
// others.
func (l *Link) Exchange(ctx context.Context, out, in []byte) error {
	if len(out) == 0 {
		return nil
	}
	pinned.Pin(&out[0])
	pinned.Pin(&in[0])
	code := C.mpi_exchange(unsafe.Pointer(&out[0]), unsafe.Pointer(&in[0]), C.int(len(out)/l.size))
	if code != 0 {
		return failure(code)
	}
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		var done C.int
		if code := C.mpi_done(&done); code != 0 {
			return failure(code)
		}
		if done != 0 {
			pinned.Unpin()
			return nil
		}
		if len(out) > smallExchange {
			pause = shortestPause
		}
		select {
		case <-ctx.Done(): // what MPI still holds stays pinned
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Close leaves the job, which all processes do together.
func (l *Link) Close() error {
	if code := C.mpi_end(); code != 0 {
		return failure(code)
	}
	return nil
}

// Abort ends all processes of the job at once, this one included, with exit status 1.
func (l *Link) Abort() { C.mpi_abort() }
