package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// allocatorFile is the library of the wheel cmeel-mimalloc, from site-packages.
const allocatorFile = "cmeel.prefix/lib/libmimalloc.so.3"

// allocatorDelay makes mimalloc keep freed memory for ten seconds. After its default of one second a server that is
// busy with something else between two runs would map the memory again.
const allocatorDelay, allocatorDelayMS = "MIMALLOC_PURGE_DELAY", "10000"

// PreloadAllocator makes mimalloc this process's allocator if the wheel cmeel-mimalloc is installed next to a plugin
// and LD_PRELOAD is not set: it replaces the process by a new one of the same command line, with LD_PRELOAD set. So
// call it before anything else.
//
// XLA for CPU allocates the temporaries of a program as one block in every run. glibc maps and unmaps such a block,
// which takes about a tenth of the processor time.
func PreloadAllocator() error {
	_, chosen := os.LookupEnv("LD_PRELOAD")
	library := findAllocator(thisHost())
	if chosen || library == "" || !shim.Available {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(os.Environ(), "LD_PRELOAD="+library)
	if os.Getenv(allocatorDelay) == "" {
		env = append(env, allocatorDelay+"="+allocatorDelayMS)
	}
	if err := syscall.Exec(self, os.Args, env); err != nil {
		return fmt.Errorf("starting again with LD_PRELOAD=%s: %w", library, err)
	}
	return nil
}

// findAllocator returns mimalloc's library next to the best plugin that has one; empty if there is none.
func findAllocator(h host) string {
	candidates, _ := search(Config{Plugin: h.env("ANISOFLIGHT_PLUGIN")}, h)
	for _, c := range candidates {
		library := filepath.Join(filepath.Dir(filepath.Dir(c.Path)), allocatorFile)
		if _, err := os.Stat(library); err == nil && !strings.ContainsAny(library, " :") { // which separate libraries
			return library
		}
	}
	return ""
}
