//go:build cgo && linux

package device_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// The process starts again with the library that is installed next to a plugin, once, and with the same command line.
// It goes on without one that would end it, and says why.
func TestAllocatorIsPreloaded(t *testing.T) {
	const child = "ANISOFLIGHT_TEST_ALLOCATOR"
	if want := os.Getenv(child); want != "" {
		err := device.PreloadAllocator()
		r := open(t, device.Config{Plugin: "go"}).Report()
		switch taken := strings.HasSuffix(r.Allocator, "libmimalloc.so.3"); {
		case want == "loaded":
			if err != nil || !taken || r.AllocatorReason != "" {
				t.Errorf("%v, malloc of %q, %q; LD_PRELOAD is %q", err, r.Allocator, r.AllocatorReason, os.Getenv("LD_PRELOAD"))
			}
		case taken || r.Allocator == "" || !strings.Contains(r.AllocatorReason, want):
			t.Errorf("malloc of %q, %q, want one that is not mimalloc's since %q", r.Allocator, r.AllocatorReason, want)
		}
		return
	}
	t.Parallel()
	const source = `#include <stddef.h>
extern void *__libc_malloc(size_t); void *malloc(size_t n) { return __libc_malloc(n); }`
	gone := filepath.Join(t.TempDir(), "libgone.so.1")
	for want, make := range map[string]func(path string) (env string){
		"loaded": func(path string) string { library(t, path, source); return "" },
		"libgone.so.1": func(path string) string { // ld.so ends a process that it is preloaded to
			library(t, gone, "int gone;")
			library(t, path, source, gone)
			if err := os.Remove(gone); err != nil {
				t.Fatal(err)
			}
			return ""
		},
		"not an ELF":         func(path string) string { write(t, path, "text"); return "" },
		"does not export":    func(path string) string { library(t, path, "int nothing;"); return "" },
		"LD_PRELOAD is set":  func(path string) string { library(t, path, source); return "LD_PRELOAD=" },
		"is not installed":   func(string) string { return "" },
		"a space or a colon": func(path string) string { library(t, path, source); return "" },
	} {
		t.Run(want, func(t *testing.T) {
			home := t.TempDir()
			if strings.Contains(want, "colon") {
				home = filepath.Join(home, "a b")
			}
			site := filepath.Join(home, "lib/python3.12/site-packages")
			write(t, filepath.Join(site, "fastatomstruct_xla_cpu/libpjrt_cpu.so"), "")
			cmd := exec.Command(os.Args[0], "-test.run=^TestAllocatorIsPreloaded$")
			cmd.Dir = home // whose parents have no .venv
			cmd.Env = append(os.Environ(), child+"="+want, "VIRTUAL_ENV="+home)
			if env := make(filepath.Join(site, "cmeel.prefix/lib/libmimalloc.so.3")); env != "" {
				cmd.Env = append(cmd.Env, env)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
