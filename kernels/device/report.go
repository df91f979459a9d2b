package device

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/backends"
)

// Kind is what a plugin computes on.
type Kind string

// The kinds of plugins.
const (
	CPU  Kind = "cpu"
	CUDA Kind = "cuda"
)

// Report reports which backend was opened and what became of every candidate.
type Report struct {
	Name       string `json:"name"`        // "xla:cpu", "xla:cuda" or "go"
	Plugin     string `json:"plugin"`      // the plugin's path; empty for the pure-Go backend
	APIVersion string `json:"api_version"` // the plugin's PJRT API, such as "0.106"
	// descriptions of the devices that the backend shows, of GPUs the chosen ones alone
	Devices    []string    `json:"devices"`
	Used       int         `json:"used"`       // of them, the first so many
	GPU        bool        `json:"gpu"`        // the machine has an NVIDIA GPU
	Plugins    bool        `json:"plugins"`    // this build can load plugins
	Candidates []Candidate `json:"candidates"` // best first
	// Memory is what may be taken of a GPU's memory; nil on other backends, which take what they need.
	Memory *MemoryShare `json:"memory,omitempty"`
	// Allocator is the library that [PreloadAllocator] takes; empty if there is none.
	Allocator string `json:"allocator"`
	// ProgramCache is the folder that keeps compiled programs between processes; empty if they are not kept.
	ProgramCache string `json:"program_cache"`
}

// MemoryShare is the part of a GPU's memory that the process may take.
type MemoryShare struct {
	Fraction    float64 `json:"fraction"`
	Preallocate bool    `json:"preallocate"` // it was taken at the start
}

// Candidate is a plugin file that was considered.
type Candidate struct {
	Path   string `json:"path"`
	Source string `json:"source"` // where it was found, such as "project .venv"
	Kind   Kind   `json:"kind"`
	Used   bool   `json:"used"`
	// why it was not used; empty if it was, and if a better one was used before its turn
	Reason string `json:"reason,omitempty"`
}

func (r Report) clone() Report {
	r.Devices = slices.Clone(r.Devices)
	r.Candidates = slices.Clone(r.Candidates)
	return r
}

// kindOf guesses from a plugin's file name and its folder, which is what its
// client options depend on.
func kindOf(path string) Kind {
	name := strings.ToLower(filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
	if strings.Contains(name, "cuda") || strings.Contains(name, "nvidia") || strings.Contains(name, "gpu") {
		return CUDA
	}
	return CPU
}

// opened is a client of a plugin.
type opened struct {
	backend   backends.Backend
	version   string       // of the plugin's PJRT API
	rewritten func() int64 // places in programs that have another form than the graph library wrote
	fromDisk  func() int64 // programs that this process has read from disk instead of compiling them
}
