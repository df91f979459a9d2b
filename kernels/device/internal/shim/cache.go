//go:build cgo && linux

package shim

// #include "shim.h"
import "C"

import (
	"unsafe"

	"github.com/anisoflight/anisoflight/kernels/device/internal/diskcache"
	"github.com/anisoflight/anisoflight/kernels/device/internal/rewrite"
)

// UseCache makes compilations of the plugin go through a cache on disk from now
// on; nil ends that. The store's context must tell apart all that the plugin's
// code depends on beside the program and its options.
func (p *Plugin) UseCache(s *diskcache.Store) { p.cache.Store(s) }

// FromDisk counts the programs that the cache has spared compiling.
func (p *Plugin) FromDisk() int64 { return p.fromDisk.Load() }

// shimCompile stands in for PJRT_Client_Compile. An executable that the plugin
// refuses to load or to serialize is compiled as if there were no cache.
//
//export shimCompile
func shimCompile(slot C.int, arguments unsafe.Pointer) unsafe.Pointer {
	args := (*C.shim_compile_args)(arguments)
	plugin := bySlot[slot].Load()
	code := withDonors(view(args.program.code, args.program.code_size))
	if plugin.products.Load() {
		code = withProducts(code)
	}
	if plugin.cpu.Load() {
		var places int
		code, places = rewrite.ForCPU(code)
		plugin.rewritten.Add(int64(places))
	}
	compile := func() unsafe.Pointer {
		return C.shim_compile(slot, args, (*C.char)(unsafe.Pointer(unsafe.SliceData(code))), C.size_t(len(code)))
	}
	store := plugin.cache.Load()
	if store == nil {
		return compile()
	}
	key := store.Key(
		view(args.program.format, args.program.format_size),
		code,
		view(args.options, args.options_size),
	)
	if saved := store.Get(key); saved != nil {
		if exe := C.shim_deserialize(slot, args.client, (*C.char)(unsafe.Pointer(&saved[0])),
			C.size_t(len(saved))); exe != nil {
			args.executable = exe
			plugin.fromDisk.Add(1)
			return nil
		}
	}
	if err := compile(); err != nil {
		return err
	}
	var s C.shim_serialized
	C.shim_serialize(slot, args.executable, &s)
	defer C.shim_free(slot, &s)
	if s.bytes != nil {
		store.Put(key, view(s.bytes, s.size))
	}
	return nil
}

// view returns memory of C as bytes, without a copy.
func view(p *C.char, n C.size_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))
}
