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
func TestAllocatorIsPreloaded(t *testing.T) {
	const child = "ANISOFLIGHT_TEST_ALLOCATOR"
	if os.Getenv(child) != "" {
		if err := device.PreloadAllocator(); err != nil {
			t.Fatal(err)
		}
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(maps), "libmimalloc.so.3") {
			t.Fatalf("the library is not loaded; LD_PRELOAD is %q", os.Getenv("LD_PRELOAD"))
		}
		return
	}
	t.Parallel()
	site := filepath.Join(t.TempDir(), "lib/python3.12/site-packages")
	write(t, filepath.Join(site, "fastatomstruct_xla_cpu/libpjrt_cpu.so"), "")
	library(t, filepath.Join(site, "cmeel.prefix/lib/libmimalloc.so.3"), "int nothing;")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1", "VIRTUAL_ENV="+filepath.Dir(filepath.Dir(filepath.Dir(site))))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
