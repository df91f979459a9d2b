package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// allocatorFile is the library of the wheel cmeel-mimalloc, from site-packages.
const allocatorFile = "cmeel.prefix/lib/libmimalloc.so.3"

// allocatorDelay makes mimalloc keep freed memory for ten seconds. With its default of one second, a server that is
// idle between two runs maps the memory again.
const allocatorDelay, allocatorDelayMS = "MIMALLOC_PURGE_DELAY", "10000"

// allocatorReason says why PreloadAllocator has not loaded mimalloc. It is set before anything else runs.
var allocatorReason string

// PreloadAllocator makes mimalloc this process's allocator if the wheel cmeel-mimalloc is installed next to a plugin
// and LD_PRELOAD is not set. It replaces the process by a new one with the same command line and LD_PRELOAD set, so
// call it before anything else. If the library cannot be loaded, it returns why, and the process continues without.
//
// XLA for CPU allocates the temporaries of a program as one block in every run. glibc maps and unmaps such a block,
// which takes about a tenth of the processor time.
func PreloadAllocator() error {
	if !shim.Available {
		return nil
	}
	library := findAllocator(thisHost())
	given, chosen := os.LookupEnv("LD_PRELOAD")
	var err error
	switch {
	case chosen && given == library && shim.Malloc() == library: // by this function
	case chosen:
		allocatorReason = fmt.Sprintf("LD_PRELOAD is set, to %q", given)
	case library == "":
		allocatorReason = "it is not installed next to a plugin; install it with `pip install cmeel-mimalloc`"
	default:
		err = restart(library)
		allocatorReason = err.Error()
	}
	return err
}

// restart replaces the process by one with a library preloaded, or returns why it cannot. It loads the library here
// first, because a process whose preloaded library needs a missing one is ended by the dynamic loader.
func restart(library string) error {
	failed := func(err error) error { return fmt.Errorf("%s: %w", library, err) }
	if strings.ContainsAny(library, " :") {
		return failed(errors.New("LD_PRELOAD cannot hold a path with a space or a colon; install it elsewhere"))
	}
	if err := verify(library, "malloc"); err != nil {
		return failed(err)
	}
	if err := shim.Try(library); err != nil {
		return failed(fmt.Errorf("%w; install what is missing (libatomic.so.1 is in the package libatomic1 of Debian and "+
			"Ubuntu, libatomic of Fedora and RHEL)", err))
	}
	self, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	env := append(os.Environ(), "LD_PRELOAD="+library)
	if os.Getenv(allocatorDelay) == "" {
		env = append(env, allocatorDelay+"="+allocatorDelayMS)
	}
	return failed(fmt.Errorf("starting again: %w", syscall.Exec(self, os.Args, env)))
}

// findAllocator returns mimalloc's library next to the best plugin that has one; empty if there is none.
func findAllocator(h host) string {
	candidates, _ := search(Config{Plugin: h.env("ANISOFLIGHT_PLUGIN")}, h)
	for _, c := range candidates {
		library := filepath.Join(filepath.Dir(filepath.Dir(c.Path)), allocatorFile)
		if _, err := os.Stat(library); err == nil {
			return library
		}
	}
	return ""
}
