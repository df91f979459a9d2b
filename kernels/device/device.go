package device

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"
)

// Device is one device of an open backend, with the compiled programs that all its devices share. It is safe for
// concurrent use.
type Device struct {
	*client
	ordinal backends.DeviceNum

	held     atomic.Int64 // bytes in buffers
	up, down atomic.Int64 // bytes copied to the device, and back

	gpuOnce  sync.Once
	gpuBytes int64 // of the GPU; 0 where the driver does not tell
}

// client is what the devices of one backend share.
type client struct {
	devices     []*Device // those in use, by ordinal
	cfg         Config
	backend     backends.Backend
	programs    *cache
	report      Report
	fromDisk    func() int64
	rewritten   func() int64
	hostVisible bool // buffers can be viewed in place
	pureGo      bool // the backend is gomlx's simplego

	mu      sync.Mutex
	closing bool           // guarded by mu
	inside  sync.WaitGroup // calls that use the backend; added to under mu

	work workbook

	// together is held by a run on several devices: two of them, begun in one order here and in the other there, would
	// wait for each other for ever. On the host every other run shares it: XLA for CPU has a thread for each part of a
	// run on several devices only where no other program has taken it.
	together sync.RWMutex

	peakOnce sync.Mutex    // held by the measurement
	peak     atomic.Uint64 // FLOP/s as float64 bits; 0 before it is measured
}

// Name says what runs the programs: "xla:cpu", "xla:cuda" or "go".
func (d *Device) Name() string { return d.report.Name }

// Report reports what was found when the device was opened, and why the rest was not used.
func (d *Device) Report() Report { return d.report.clone() }

// Peers returns the devices in use, in order; each is one of its own peers.
func (d *Device) Peers() []*Device { return slices.Clone(d.devices) }

// Ordinal returns the device's place among its peers.
func (d *Device) Ordinal() int { return int(d.ordinal) }

// Stats returns the counters of the programs of all devices, and of this one's buffers.
func (d *Device) Stats() Stats {
	s := d.programs.snapshot()
	s.FromDisk, s.Rewritten = d.fromDisk(), d.rewritten()
	s.BufferBytes = d.held.Load()
	s.BytesUp, s.BytesDown = d.up.Load(), d.down.Load()
	return s
}

// HostVisible reports whether [Buffer.View] works: buffers lie in the host's memory.
func (d *Device) HostVisible() bool { return d.hostVisible }

// Close waits for the calls in progress, compilations included, and frees the
// backend. Afterwards the device's programs and buffers answer [ErrClosed].
// Closing twice is allowed.
func (d *Device) Close() error {
	d.mu.Lock()
	again := d.closing
	d.closing = true
	d.mu.Unlock()
	d.inside.Wait()
	if !again {
		d.programs.purge()
		d.backend.Finalize()
	}
	return nil
}

// enter announces a call that uses the backend and must be followed by leave.
// It is not a lock: calls may nest, and none can wait for Close.
func (d *Device) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return ErrClosed
	}
	d.inside.Add(1)
	return nil
}

func (d *Device) leave() { d.inside.Done() }

// Work returns what each kind of program has done; a kind is the first word of a
// program's key.
func (d *Device) Work() map[string]Work {
	return d.work.snapshot()
}

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
