//go:build cgo && linux

package shim

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gomlx/go-xla/pkg/pjrt"

	"github.com/anisoflight/anisoflight/kernels/device/internal/diskcache"
)

// Available is true if this build can load plugins.
const Available = true

// Plugin is a plugin in this process.
type Plugin struct {
	// Name is go-xla's name of the plugin. It looks like an absolute path, because go-xla searches the system's library
	// folders for any other name.
	Name         string
	Major, Minor int // its PJRT API version

	settings            atomic.Pointer[Settings]
	fromDisk, rewritten atomic.Int64

	lowering sync.Mutex
	lowered  []byte // the text for Lower; guarded by lowering
}

// Settings say how a plugin's programs are compiled. The zero value leaves that to the plugin.
type Settings struct {
	// Cache keeps compiled programs; nil keeps none. Its context must identify everything that compiled code depends on
	// except the program and its options.
	Cache         *diskcache.Store
	ExactProducts bool // products of float32 are exact, except in a module named [TF32Module]
	RewriteForCPU bool // see package rewrite
}

// Configure sets how programs are compiled from now on.
func (p *Plugin) Configure(s Settings) { p.settings.Store(&s) }

// FromDisk returns the number of programs that were read from the cache instead of compiled.
func (p *Plugin) FromDisk() int64 { return p.fromDisk.Load() }

// Rewritten returns the number of places in programs that package rewrite has written in another form.
func (p *Plugin) Rewritten() int64 { return p.rewritten.Load() }

var (
	mu     sync.Mutex
	loaded = map[string]*Plugin{} // by path

	bySlot [C.SHIM_SLOTS]atomic.Pointer[Plugin]
)

// Load opens the plugin at an absolute path and registers it with go-xla. A plugin is loaded once per process and never
// unloaded; a second Load returns the first one's result. Verify the file first: some damaged files kill the process.
func Load(path string) (*Plugin, error) {
	mu.Lock()
	defer mu.Unlock()
	if p := loaded[path]; p != nil {
		return p, nil
	}
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	var out C.shim_plugin
	switch C.shim_load(c, &out) {
	case C.SHIM_OK:
	case C.SHIM_DLOPEN_FAILED:
		return nil, fmt.Errorf("the dynamic loader refuses it: %s", C.GoString(&out.message[0]))
	case C.SHIM_NO_SYMBOL:
		return nil, errors.New("it does not export GetPjrtApi, so it is no PJRT plugin")
	case C.SHIM_NULL_API:
		return nil, errors.New("its GetPjrtApi returned a null pointer")
	case C.SHIM_TOO_OLD:
		return nil, errors.New("its PJRT API is older than 0.83")
	case C.SHIM_NO_SLOT:
		return nil, fmt.Errorf("this process has loaded %d plugins already, the most it can", C.SHIM_SLOTS)
	default:
		return nil, errors.New("out of memory")
	}
	p := &Plugin{
		Name:  fmt.Sprintf("/pjrt/%d", len(loaded)),
		Major: int(out.major),
		Minor: int(out.minor),
	}
	p.Configure(Settings{})
	bySlot[out.slot].Store(p)
	if err := pjrt.RegisterPreloadedPlugin(p.Name, uintptr(out.api)); err != nil {
		return nil, fmt.Errorf("it does not initialise: %w", err)
	}
	loaded[path] = p
	return p, nil
}

// Try loads a library, or returns why that is not possible.
func Try(path string) error {
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	if why := C.shim_try(c); why != nil {
		return errors.New(C.GoString(why))
	}
	return nil
}

// Malloc returns the path of the library that provides malloc.
func Malloc() string { return C.GoString(C.shim_malloc()) }

// TrimMalloc returns the memory that C and C++ code has freed to the kernel.
func TrimMalloc() { C.shim_trim_malloc() }

// TuneMalloc sets up glibc's allocator for large tensors, unless the user has set MALLOC_* variables. Programs run
// 5–14 % faster.
var TuneMalloc = sync.OnceFunc(func() {
	for _, name := range []string{
		"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",
		"GLIBC_TUNABLES",
	} {
		if os.Getenv(name) != "" {
			return
		}
	}
	C.shim_tune_malloc()
})
