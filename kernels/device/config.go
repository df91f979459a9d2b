package device

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/backends"

	"github.com/anisoflight/anisoflight/kernels/device/internal/diskcache"
)

// Config says which backend to open. The zero value searches for the best one.
type Config struct {
	// Plugin chooses the backend:
	//
	//	""        ANISOFLIGHT_PLUGIN, or else the search in the package comment
	//	"cpu"     the plugin named by ANISOFLIGHT_PLUGIN, or else a search for CPU plugins; an error if none works
	//	"cuda"    the same for CUDA plugins
	//	"go"      the pure-Go backend
	//	a path    this PJRT plugin; an error if it cannot be used
	Plugin string

	// Programs is the largest number of compiled programs kept in memory. Default 128.
	Programs int

	// Devices is the number of the backend's devices that this process uses, or "all". Default 1. CUDA_VISIBLE_DEVICES
	// chooses among GPUs. Several devices of a host share its processors and are no faster than one: they serve to try
	// out what several GPUs would do.
	Devices string

	// MemoryFraction is the share of a GPU's memory that this process may use, in (0, 1]. Default 0.75. Other backends
	// ignore it.
	MemoryFraction float64

	// MemoryLimit bounds the bytes of buffers and programs together, on each device. Programs whose estimate is larger
	// are refused before they are compiled. Default: see [Device.Available].
	MemoryLimit int64

	// ProgramCache is the folder of compiled programs, shared by processes. "" means ANISOFLIGHT_PROGRAM_CACHE, or else a
	// folder in the user's cache; "off" means none. Anyone who can write to it can run code in this process.
	ProgramCache string

	// Lower, if not nil, is called with each program before it is compiled, possibly by several goroutines. If it returns
	// true, the program is not compiled, and [Device.Program] returns [ErrLowered]. The pure-Go backend does not call it.
	Lower func(Lowered) (enough bool)

	// Logger receives the warning about the slow fallback. Default slog.Default().
	Logger *slog.Logger

	source    string // where Plugin comes from
	requested int    // number of devices; 0 means all
}

// resolved fills in the environment and the defaults above, and refuses what no backend can be opened with.
func (c Config) resolved(env func(string) string) (Config, error) {
	c.Programs = cmp.Or(max(c.Programs, 0), 128)
	c.MemoryFraction = cmp.Or(c.MemoryFraction, 0.75)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.source = "configuration"
	switch kind, named := Kind(c.Plugin), env("ANISOFLIGHT_PLUGIN"); {
	case kind == "":
		c.Plugin, c.source = named, "ANISOFLIGHT_PLUGIN"
	case !kind.known() || named == "" || named == "go" || Kind(named).known(): // c.Plugin goes first
	case kindOf(named) != kind:
		return c, &PluginError{Path: named, Source: "ANISOFLIGHT_PLUGIN", Reason: fmt.Sprintf(
			"by its name it is a plugin for %s, but the device is set to %s; unset one of them", kindOf(named), kind)}
	default:
		c.Plugin, c.source = named, "ANISOFLIGHT_PLUGIN"
	}
	c.ProgramCache = cmp.Or(c.ProgramCache, env("ANISOFLIGHT_PROGRAM_CACHE"))
	switch {
	case !(c.MemoryFraction > 0 && c.MemoryFraction <= 1):
		return c, fmt.Errorf("the device's share of memory must lie above 0 and be at most 1, got %g", c.MemoryFraction)
	case c.MemoryLimit < 0:
		return c, fmt.Errorf("the device's memory limit must be a number of bytes, or 0 for what there is, got %d",
			c.MemoryLimit)
	}
	if c.Devices == "all" {
		return c, nil
	}
	n, err := strconv.Atoi(cmp.Or(c.Devices, "1"))
	if err != nil || n < 1 || n > mostDevices {
		return c, fmt.Errorf("devices must be all or a number from 1 to %d, got %q", mostDevices, c.Devices)
	}
	c.requested = n
	return c, nil
}

const mostDevices = 64

// threadsOfXLA is the environment variable for the number of threads of XLA for CPU.
const threadsOfXLA = "NPROC"

// threads returns the number of threads for programs on the host, unless there are more devices: NPROC, or else
// GOMAXPROCS. More threads than processors would wait for each other.
func threads() int {
	if n, err := strconv.Atoi(os.Getenv(threadsOfXLA)); err == nil && n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// programDir returns the folder of compiled programs, or "" if they are not kept.
func (c Config) programDir() string {
	switch c.ProgramCache {
	case "off":
		return ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "anisoflight", "programs")
	}
	return absolute(c.ProgramCache)
}

// programCacheBytes bounds the cache of compiled programs on disk.
const programCacheBytes = 1 << 30

// programCache opens the cache for a plugin's programs; nil if they are not kept. Apart from its text and options, a
// compiled program depends on the compiler and its flags, the processor, and the number of threads.
func programCache(path string, b backends.Backend, cfg Config) *diskcache.Store {
	dir := cfg.programDir()
	info, err := os.Stat(path)
	if dir == "" || err != nil {
		return nil
	}
	return diskcache.Open(dir, programCacheBytes,
		fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()),
		os.Getenv("XLA_FLAGS"),
		fmt.Sprint(b.DeviceDescription(0)),
		runtime.GOARCH, fmt.Sprint("threads ", max(threads(), cfg.requested)), processor(), cudaVersions(path, "/proc"))
}

// cudaVersions names NVIDIA's driver and the wheels of its libraries in the plugin's site-packages. It is empty if
// there are none.
func cudaVersions(plugin, proc string) string {
	driver, _ := os.ReadFile(filepath.Join(proc, "driver/nvidia/version"))
	wheels, _ := filepath.Glob(filepath.Join(filepath.Dir(plugin), "../../nvidia_*.dist-info"))
	for i, path := range wheels {
		wheels[i] = filepath.Base(path)
	}
	return string(driver) + strings.Join(wheels, "\n")
}

// processor returns Linux's description of the processor, without what changes while it runs.
func processor() string {
	file, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(file), "\n\n")
	lines := slices.DeleteFunc(strings.Split(first, "\n"), func(line string) bool {
		return strings.Contains(line, "MHz") || strings.Contains(strings.ToLower(line), "bogomips")
	})
	return strings.Join(lines, "\n")
}
