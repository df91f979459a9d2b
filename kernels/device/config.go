package device

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Config says which backend to open. The zero value searches for the best one.
type Config struct {
	// Plugin chooses the backend:
	//
	//	""        what ANISOFLIGHT_PLUGIN says, else search as the package comment tells
	//	"cpu"     the same search, CPU plugins only
	//	"cuda"    the same search, CUDA plugins only; an error where none works
	//	"go"      the pure-Go backend
	//	a path    this PJRT plugin and no other; an error where it cannot be used
	Plugin string

	// ProjectDir is the folder whose .venv is searched. Default: the parent of
	// the executable's folder, then the working directory and its parents.
	ProjectDir string

	// Programs is the largest number of compiled programs kept. Default 128.
	Programs int

	// Index says which of the machine's GPUs is used, counted from 0 as CUDA counts
	// them (CUDA_VISIBLE_DEVICES first). Without Devices one process uses one; the others
	// are not touched. Anything but 0 is an error with a backend that is not CUDA.
	Index int

	// Devices says which of the backend's devices are used by this process, each with memory of its own:
	//
	//	""       one: GPU Index, or the host
	//	"all"    all GPUs; the host is one
	//	"4"      so many: GPUs from 0 on, or parts of the host, which share its processors
	//	"0,2"    these GPUs
	//
	// On the host several devices serve to try what several GPUs would do; they compute no faster than one. XLA has a
	// thread for each of them, be they more than the processors.
	Devices string

	// MemoryFraction is the share of a GPU's memory that this process may take, in
	// (0, 1]. Default 0.75. Other backends ignore it.
	MemoryFraction float64

	// Preallocate takes that share at the start, in one piece, so that the memory can
	// neither fragment nor go to another process meanwhile. Other backends ignore it.
	Preallocate bool

	// MemoryLimit is how many bytes buffers and programs may take together, on each device. Programs that
	// need more by estimate are refused before they are compiled. Default: what the
	// machine, or the GPU's share, has to give; see [Device.Available].
	MemoryLimit int64

	// ProgramCache is the folder that keeps compiled programs between processes:
	//
	//	""        what ANISOFLIGHT_PROGRAM_CACHE says, else programs in the user's cache folder
	//	"off"     they are not kept
	//
	// Whoever can write to it can run code in this process.
	ProgramCache string

	// Logger receives the one line about the slow fallback. Default slog.Default().
	Logger *slog.Logger

	source string // where Plugin comes from
}

// withDefaults fills in what the caller has left open, from the environment or
// from the defaults above.
func (c Config) withDefaults(env func(string) string) Config {
	if c.Programs <= 0 {
		c.Programs = 128
	}
	if c.MemoryFraction == 0 {
		c.MemoryFraction = 0.75
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.source = "configuration"
	if c.Plugin == "" {
		c.Plugin, c.source = env("ANISOFLIGHT_PLUGIN"), "ANISOFLIGHT_PLUGIN"
	}
	if c.ProgramCache == "" {
		c.ProgramCache = env("ANISOFLIGHT_PROGRAM_CACHE")
	}
	return c
}

// check refuses what no backend can be opened with.
func (c Config) check() error {
	switch {
	case !(c.MemoryFraction > 0 && c.MemoryFraction <= 1):
		return fmt.Errorf("the device's share of memory must lie above 0 and be at most 1, got %g", c.MemoryFraction)
	case c.Index < 0:
		return fmt.Errorf("the device's index must not be negative, got %d", c.Index)
	case c.Index > 0 && c.Devices != "":
		return fmt.Errorf("the device's index must be left out beside devices, got %d beside %q", c.Index, c.Devices)
	case c.MemoryLimit < 0:
		return fmt.Errorf("the device's memory limit must be a number of bytes, or 0 for what there is, got %d",
			c.MemoryLimit)
	}
	_, _, err := c.devices()
	return err
}

// allDevices asks for every device that there is.
const allDevices = "all"

// mostDevices bounds what is asked of a backend.
const mostDevices = 64

// devices returns the GPUs that Devices lists, or how many devices it asks for; 0 is all.
func (c Config) devices() (list []int64, n int, err error) {
	wrong := fmt.Errorf("devices must be all, a number from 1 to %d, or a list of different GPUs such as 0,2, got %q",
		mostDevices, c.Devices)
	switch {
	case c.Devices == "":
		return nil, 1, nil
	case c.Devices == allDevices:
		return nil, 0, nil
	}
	for part := range strings.SplitSeq(c.Devices, ",") {
		at, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil || slices.Contains(list, int64(at)) {
			return nil, 0, wrong
		}
		list = append(list, int64(at))
	}
	if strings.Contains(c.Devices, ",") {
		return list, len(list), nil
	}
	if n = int(list[0]); n < 1 || n > mostDevices {
		return nil, 0, wrong
	}
	return nil, n, nil
}

// gpus lists the GPUs that the backend shall show; nil is all.
func (c Config) gpus() []int64 {
	list, n, _ := c.devices()
	switch {
	case c.Devices == "":
		return []int64{int64(c.Index)}
	case list == nil && n > 0:
		for k := range n {
			list = append(list, int64(k))
		}
	}
	return list
}

// hostDevices is how many devices XLA for CPU shall show.
func (c Config) hostDevices() int {
	_, n, _ := c.devices()
	return max(n, 1)
}

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

// count returns how many of a backend's devices are used.
func (c Config) count(name string, shown int) (int, error) {
	list, n, err := c.devices()
	if n == 0 {
		n = shown
	}
	cuda := name == "xla:"+string(CUDA)
	switch {
	case c.Index > 0 && !cuda:
		err = fmt.Errorf("device index %d: it counts GPUs, and %s runs the programs", c.Index, name)
	case list != nil && !cuda:
		err = fmt.Errorf("devices must be all or a number where %s runs the programs, got %q: a list counts GPUs", name,
			c.Devices)
	case n > shown:
		err = fmt.Errorf("devices must be at most the %d of %s, got %q", shown, name, c.Devices)
	}
	return n, err
}
