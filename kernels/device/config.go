package device

import (
	"fmt"
	"log/slog"
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
	// them (CUDA_VISIBLE_DEVICES first). One process uses one; the others are not
	// touched. Anything but 0 is an error with a backend that is not CUDA.
	Index int

	// MemoryFraction is the share of a GPU's memory that this process may take, in
	// (0, 1]. Default 0.75. Other backends ignore it.
	MemoryFraction float64

	// Preallocate takes that share at the start, in one piece, so that the memory can
	// neither fragment nor go to another process meanwhile. Other backends ignore it.
	Preallocate bool

	// MemoryLimit is how many bytes buffers and programs may take together. Programs that
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

	// Blocks says what becomes of large blocks of memory that programs on the host free:
	//
	//	""        what ANISOFLIGHT_BLOCKS says, else they are kept for the next run
	//	"off"     they go back to the system's allocator
	//
	// The first device that a process opens with a plugin decides for those after it.
	Blocks string

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
	if c.Blocks == "" {
		c.Blocks = env("ANISOFLIGHT_BLOCKS")
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
	case c.Blocks != "" && c.Blocks != "off":
		return fmt.Errorf("ANISOFLIGHT_BLOCKS must be off or absent, got %q", c.Blocks)
	case c.MemoryLimit < 0:
		return fmt.Errorf("the device's memory limit must be a number of bytes, or 0 for what there is, got %d",
			c.MemoryLimit)
	}
	return nil
}
