//go:build cgo && linux

// Package blockstest loads a small library that allocates and frees, to be served by package blocks. Only tests import
// it.
package blockstest

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "../blocks.h"
// typedef void* (*taker)(size_t, size_t);
// typedef void (*giver)(void*);
// static void* call_take(void* f, size_t alignment, size_t size) { return ((taker)f)(alignment, size); }
// static void call_give(void* f, void* at) { ((giver)f)(at); }
// static void* call_resize(void* f, void* at, size_t size) { return ((void* (*)(void*, size_t))f)(at, size); }
// static size_t call_usable(void* f, void* at) { return ((size_t (*)(void*))f)(at); }
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

const source = `
#include <malloc.h>
#include <stdlib.h>
static void (*const release)(void*) = free; /* an address in its data, beside the one that calls go by */
void* by_posix(size_t alignment, size_t size) {
	void* at;
	return posix_memalign(&at, alignment, size) == 0 ? at : NULL;
}
void* by_c11(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
void give(void* at) { free(at); }
void give_by_address(void* at) { release(at); }
void* resize(void* at, size_t size) { return realloc(at, size); }
size_t usable(void* at) { return malloc_usable_size(at); }
`

// Library is the library in this process.
type Library struct {
	Handle              unsafe.Pointer
	Posix, C11          Taker
	Give, GiveByAddress func(at unsafe.Pointer)
	Resize              func(at unsafe.Pointer, size int) unsafe.Pointer
	Usable              func(at unsafe.Pointer) int
}

// Taker allocates: at a multiple of alignment, so many bytes.
type Taker func(alignment, size int) unsafe.Pointer

// Open compiles the library with the C compiler, with options of the linker's, and loads it.
func Open(t testing.TB, options ...string) *Library {
	t.Helper()
	dir := t.TempDir()
	src, path := filepath.Join(dir, "library.c"), filepath.Join(dir, "library.so")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", append([]string{"-shared", "-fPIC", "-o", path, src},
		options...)...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	handle := C.dlopen(c, C.RTLD_LAZY|C.RTLD_LOCAL)
	if handle == nil {
		t.Fatalf("dlopen: %s", C.GoString(C.dlerror()))
	}
	symbol := func(name string) unsafe.Pointer {
		n := C.CString(name)
		defer C.free(unsafe.Pointer(n))
		at := C.dlsym(handle, n)
		if at == nil {
			t.Fatalf("the library has no %s", name)
		}
		return at
	}
	taker := func(name string) Taker {
		f := symbol(name)
		return func(alignment, size int) unsafe.Pointer { return C.call_take(f, C.size_t(alignment), C.size_t(size)) }
	}
	giver := func(name string) func(unsafe.Pointer) {
		f := symbol(name)
		return func(at unsafe.Pointer) { C.call_give(f, at) }
	}
	resize, usable := symbol("resize"), symbol("usable")
	return &Library{
		Handle: handle, Posix: taker("by_posix"), C11: taker("by_c11"), Give: giver("give"),
		GiveByAddress: giver("give_by_address"),
		Resize:        func(at unsafe.Pointer, size int) unsafe.Pointer { return C.call_resize(resize, at, C.size_t(size)) },
		Usable:        func(at unsafe.Pointer) int { return int(C.call_usable(usable, at)) },
	}
}

// Counts tells of the blocks of all libraries that are served.
type Counts struct{ Used, Kept int }

// Count returns the present counts.
func Count() Counts {
	n := C.blocks_count()
	return Counts{int(n.used), int(n.kept)}
}

// Faults returns how many pages the process has been given so far.
func Faults(t testing.TB) int64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u.Minflt
}

// Age makes all kept blocks older.
func Age(by time.Duration) { C.blocks_age(C.int(by / time.Second)) }

// Tend looks after kept blocks once, as their thread does every second.
func Tend() { C.blocks_tend() }

// Offered returns how many bytes of the mapping at an address the kernel may take while nobody writes to them.
func Offered(t testing.TB, at unsafe.Pointer) int64 {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	within := false
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var kib int64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			within = from <= uintptr(at) && uintptr(at) < to
		} else if n, _ := fmt.Sscanf(line, "LazyFree: %d kB", &kib); n == 1 && within {
			return kib << 10
		}
	}
	t.Fatalf("nothing is mapped at %p", at)
	return 0
}

// Mathematics gives the C library of mathematics.
func Mathematics(t testing.TB) unsafe.Pointer {
	t.Helper()
	name := C.CString("libm.so.6")
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_LAZY)
	if handle == nil {
		t.Fatalf("dlopen: %s", C.GoString(C.dlerror()))
	}
	return handle
}
