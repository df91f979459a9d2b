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

	"github.com/anisoflight/anisoflight/kernels/device/internal/blocks"
	"github.com/anisoflight/anisoflight/kernels/device/internal/diskcache"
)

// Available says whether this build can load plugins at all.
const Available = true

// Plugin is a plugin in this process.
type Plugin struct {
	// Name is what go-xla knows the plugin by. It looks like an absolute path,
	// because go-xla searches the system's library folders for any other name.
	Name         string
	Major, Minor int // its PJRT API version

	library  unsafe.Pointer // dlopen's handle
	cache    atomic.Pointer[diskcache.Store]
	products atomic.Bool
	cpu      atomic.Bool
	fromDisk atomic.Int64

	rewritten atomic.Int64
	keeps     atomic.Bool
}

var (
	mu     sync.Mutex
	loaded = map[string]*Plugin{} // by path

	bySlot [C.SHIM_SLOTS]atomic.Pointer[Plugin]
)

// Load opens the plugin at an absolute path and registers it with go-xla. A
// plugin is loaded once per process and never unloaded; a second Load returns the
// first one's result. The file must have been verified before: the dynamic
// loader kills the process on some damaged files.
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
		Name:    fmt.Sprintf("/pjrt/%d", len(loaded)),
		Major:   int(out.major),
		Minor:   int(out.minor),
		library: out.library,
	}
	bySlot[out.slot].Store(p)
	if err := pjrt.RegisterPreloadedPlugin(p.Name, uintptr(out.api)); err != nil {
		return nil, fmt.Errorf("it does not initialise: %w", err)
	}
	loaded[path] = p
	return p, nil
}

// TuneMalloc sets glibc's allocator up for large tensors that come and go, unless
// the user has set MALLOC_* variables. Programs run 5–14 % faster.
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

// ForCPU says that the plugin runs programs on the host: programs are given the form in which they are fast there
// (package rewrite) and, with keep, its large allocations are kept for its next run (package blocks).
func (p *Plugin) ForCPU(keep bool) {
	if keep && !p.keeps.Load() {
		p.keeps.Store(blocks.Serve(p.library))
	}
	p.cpu.Store(true)
}

// KeepsBlocks reports whether the plugin's large allocations are kept.
func (p *Plugin) KeepsBlocks() bool { return p.keeps.Load() }

// Rewritten counts the places in programs that package rewrite has written in another form.
func (p *Plugin) Rewritten() int64 { return p.rewritten.Load() }

// WriteProducts says whether the precision of products is written into programs from now
// on: float32 exactly, unless the module is called [TF32Module].
func (p *Plugin) WriteProducts(on bool) { p.products.Store(on) }
