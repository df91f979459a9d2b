//go:build cgo && linux

package shim

// #include "shim.h"
import "C"

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/anisoflight/anisoflight/kernels/device/internal/rewrite"
)

// shimCompile replaces PJRT_Client_Compile. If the plugin cannot load or serialize an executable, the cache is not
// used.
//
//export shimCompile
func shimCompile(slot C.int, arguments unsafe.Pointer) unsafe.Pointer {
	args := (*C.shim_compile_args)(arguments)
	plugin := bySlot[slot].Load()
	settings := plugin.settings.Load()
	code := withDonors(view(args.program.code, args.program.code_size))
	if text, found := bytes.CutPrefix(code, []byte("module @"+loweredModule)); found {
		plugin.lowered = withExactProducts(slices.Concat([]byte("module @"), text))
		code = []byte("no program") // the plugin returns an error
		return C.shim_compile(slot, args, (*C.char)(unsafe.Pointer(unsafe.SliceData(code))), C.size_t(len(code)))
	}
	if settings.ExactProducts {
		code = withExactProducts(code)
	}
	if settings.RewriteForCPU {
		var places int
		code, places = rewrite.ForCPU(code)
		plugin.rewritten.Add(int64(places))
	}
	compile := func() unsafe.Pointer {
		return C.shim_compile(slot, args, (*C.char)(unsafe.Pointer(unsafe.SliceData(code))), C.size_t(len(code)))
	}
	store := settings.Cache
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

// loweredModule begins the names of modules that Lower takes.
const loweredModule = "lowered_"

// Lower returns the StableHLO text of a program as a CUDA plugin would get it. compile must compile a program whose
// module has the given name; it gets an error. The text is nil if compile fails before that.
func (p *Plugin) Lower(module string, compile func(module string)) []byte {
	p.lowering.Lock()
	defer p.lowering.Unlock()
	p.lowered = nil
	compile(loweredModule + module)
	return p.lowered
}

// view returns memory of C as bytes, without a copy.
func view(p *C.char, n C.size_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))
}
