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
	//	""        what ANISOFLIGHT_PLUGIN says, else search as the package comment tells
	//	"cpu"     the plugin that ANISOFLIGHT_PLUGIN names, else search for CPU plugins; an error if none works
	//	"cuda"    the same for CUDA plugins
	//	"go"      the pure-Go backend
	//	a path    this PJRT plugin and no other; an error where it cannot be used
	Plugin string

	// Programs is the largest number of compiled programs kept. Default 128.
	Programs int

	// Devices says how many of the backend's devices this process uses, each with memory of its own: "all", or a number.
	// Default 1. GPUs count as CUDA counts them, which CUDA_VISIBLE_DEVICES decides on. Parts of the host share its
	// processors: they serve to try what several GPUs would do, and compute no faster than one.
	Devices string

	// MemoryFraction is the share of a GPU's memory that this process may take, in (0, 1]. Default 0.75. Other backends
	// ignore it.
	MemoryFraction float64

	// MemoryLimit is how many bytes buffers and programs may take together, on each device. Programs that need more by
	// estimate are refused before they are compiled. Default: what the machine, or the GPU's share, has to give; see
	// [Device.Available].
	MemoryLimit int64

	// ProgramCache is the folder that keeps compiled programs between processes:
	//
	//	""        what ANISOFLIGHT_PROGRAM_CACHE says, else programs in the user's cache folder
	//	"off"     they are not kept
	//
	// Whoever can write to it can run code in this process.
	ProgramCache string

	// Lower, if not nil, is called with each program before it is compiled. Where it returns true the program is not
	// compiled, and [Device.Program] returns [ErrLowered]. It may be called by several goroutines at once. The pure-Go
	// backend calls it for no program.
	Lower func(Lowered) (enough bool)

	// Logger receives the one line about the slow fallback. Default slog.Default().
	Logger *slog.Logger

	source string // where Plugin comes from
	asked  int    // devices; 0 is all
}

// resolved fills in what the caller has left open, from the environment or from the defaults above, and refuses what no
// backend can be opened with.
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
	c.asked = n
	return c, nil
}

// mostDevices bounds what is asked of a backend.
const mostDevices = 64

// threadsOfXLA is the environment's name for how many threads XLA for CPU shall have.
const threadsOfXLA = "NPROC"

// threads is how many threads programs on the host run on, unless there are more devices: what NPROC says, else as many
// as Go's, GOMAXPROCS. More than there are processors would wait for each other.
func threads() int {
	if n, err := strconv.Atoi(os.Getenv(threadsOfXLA)); err == nil && n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// programDir is the folder of compiled programs; empty if they are not kept.
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

// programCache opens the cache for a plugin's programs; nil if they are not kept. A compiled program depends, besides
// its text and options, on the compiler and its flags, the processor, whose instructions it uses, and the threads that
// it divides loops among.
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
		runtime.GOARCH, fmt.Sprint("threads ", max(threads(), cfg.asked)), processor(), cudaVersions(path, "/proc"))
}

// cudaVersions names NVIDIA's driver and, by their records, the wheels with its libraries that stand in the plugin's
// site-packages. It is empty where there are none.
func cudaVersions(plugin, proc string) string {
	driver, _ := os.ReadFile(filepath.Join(proc, "driver/nvidia/version"))
	wheels, _ := filepath.Glob(filepath.Join(filepath.Dir(plugin), "../../nvidia_*.dist-info"))
	for i, path := range wheels {
		wheels[i] = filepath.Base(path)
	}
	return string(driver) + strings.Join(wheels, "\n")
}

// processor reports what instructions the processor has, as Linux describes it. What changes while it runs is left out.
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
