package device

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// Device is one device of an open backend, with the compiled programs that all its devices share. It is safe for
// concurrent use.
type Device struct {
	*client
	ordinal backends.DeviceNum

	held     atomic.Int64 // bytes in buffers
	up, down atomic.Int64 // bytes copied to the device, and back

	gpuOnce  sync.Once
	gpuBytes int64 // of the GPU; 0 if unknown
}

// client is shared by the devices of one backend.
type client struct {
	devices     []*Device // those in use, by ordinal
	cfg         Config
	backend     backends.Backend
	programs    *cache
	report      Report
	plugin      *shim.Plugin // nil: the backend is gomlx's simplego
	before      [2]int64     // the plugin's counts when this client started
	hostVisible bool         // buffers can be viewed in place

	mu      sync.Mutex
	closing bool           // guarded by mu
	inside  sync.WaitGroup // calls that use the backend; added to under mu

	work map[string]Work // by kind; guarded by mu

	// together is held by a run on several devices: two of them could start in different orders on different devices, and
	// deadlock. On the host all other runs share it, because XLA for CPU has a thread for each part of a run on several
	// devices only if no other program uses it.
	together sync.RWMutex

	trim *time.Timer // see [trimDelay]

	peakOnce sync.Mutex    // held by the measurement
	peak     atomic.Uint64 // FLOP/s as float64 bits; 0 before it is measured
}

// Open finds a backend and starts it. It never downloads anything. If [Config.Plugin] or ANISOFLIGHT_PLUGIN names a
// file or a kind of plugin and it cannot be used, Open fails with a [*PluginError]. Otherwise, if no plugin can be
// used, it logs a warning and starts the pure-Go backend. With several devices Open returns the first; see
// [Device.Peers].
func Open(cfg Config) (*Device, error) {
	h := thisHost()
	cfg, err := cfg.resolved(h.env)
	if err != nil {
		return nil, err
	}
	d := &Device{client: &client{cfg: cfg, work: map[string]Work{}}}
	d.report = Report{GPU: h.gpu, Plugins: shim.Available, Allocator: shim.Malloc(), AllocatorReason: allocatorReason}
	if err := d.start(h); err != nil {
		return nil, err
	}
	for i := range d.backend.NumDevices() {
		d.report.Devices = append(d.report.Devices, fmt.Sprint(d.backend.DeviceDescription(backends.DeviceNum(i))))
	}
	shown := d.backend.NumDevices()
	d.report.Used = cmp.Or(cfg.requested, shown)
	if d.report.Used > shown {
		d.backend.Finalize()
		return nil, fmt.Errorf("devices must be at most the %d of %s, got %q", shown, d.Name(), cfg.Devices)
	}
	if d.programs, err = newCache(cfg.Programs, d.client); err != nil {
		d.backend.Finalize()
		return nil, err
	}
	d.devices = []*Device{d}
	d.trim = time.AfterFunc(trimDelay, func() {
		shim.TrimMalloc()
		debug.FreeOSMemory()
	})
	for k := 1; k < d.report.Used; k++ {
		d.devices = append(d.devices, &Device{client: d.client, ordinal: backends.DeviceNum(k)})
	}
	return d, nil
}

// start opens the first backend that works.
func (d *Device) start(h host) error {
	if d.cfg.Plugin == "go" {
		return d.startGo()
	}
	found, named := search(d.cfg, h)
	d.report.Candidates = found
	reason := "no plugin found; run `make build`, or see `anisoflight doctor`"
	for i := range found {
		c := &found[i]
		if c.Reason != "" { // of no use on this machine
			continue
		}
		err := d.startXLA(*c)
		if err == nil {
			c.Used = true
			return nil
		}
		if named {
			return &PluginError{Path: c.Path, Source: c.Source, Reason: err.Error()}
		}
		c.Reason = err.Error()
		reason = c.Path + ": " + c.Reason
		d.cfg.Logger.Warn("plugin not used", "path", c.Path, "reason", c.Reason)
	}
	if kind := Kind(d.cfg.Plugin); kind != "" {
		return &PluginError{Path: d.cfg.Plugin, Source: d.cfg.source, Reason: noneOf(kind, found)}
	}
	d.cfg.Logger.Warn("using the pure-Go backend, about 20 times slower than XLA", "reason", reason)
	return d.startGo()
}

// startXLA opens a plugin, or returns what is wrong with it.
func (d *Device) startXLA(c Candidate) error {
	err := verify(c.Path, "GetPjrtApi")
	if err == nil {
		d.backend, d.plugin, err = openXLA(c.Path, c.Kind, d.cfg)
	}
	if err != nil {
		return err
	}
	d.hostVisible = c.Kind == CPU
	d.before = [2]int64{d.plugin.FromDisk(), d.plugin.Rewritten()}
	d.report.Name = "xla:" + string(c.Kind)
	d.report.Plugin, d.report.APIVersion = c.Path, fmt.Sprintf("%d.%d", d.plugin.Major, d.plugin.Minor)
	d.report.ProgramCache = d.cfg.programDir()
	if c.Kind == CUDA {
		d.report.MemoryFraction = d.cfg.MemoryFraction
	}
	return nil
}

func (d *Device) startGo() error {
	// Its default mode of parallel operations deadlocks on two cores.
	b, err := simplego.New("ops_sequential")
	if err != nil {
		return fmt.Errorf("pure-Go backend: %w", err)
	}
	d.backend, d.hostVisible = b, true
	d.report.Name = "go"
	return nil
}

// noneOf says why no plugin of a kind is used, and what to do.
func noneOf(kind Kind, found []Candidate) string {
	for _, c := range found {
		if c.Kind == kind && c.Reason != "" {
			return fmt.Sprintf("no %s plugin can be used; %s: %s", kind, c.Path, c.Reason)
		}
	}
	wheel, other := "fastatomstruct-xla-cpu", "go"
	if kind == CUDA {
		wheel, other = "jax-cuda13-pjrt", "cpu"
	}
	return fmt.Sprintf("no %s plugin found; install one with `pip install %s`, or choose %q", kind, wheel, other)
}

// Name returns "xla:cpu", "xla:cuda" or "go".
func (d *Device) Name() string { return d.report.Name }

// Report returns what was found when the device was opened, and why other candidates were not used.
func (d *Device) Report() Report {
	r := d.report
	r.Devices, r.Candidates = slices.Clone(r.Devices), slices.Clone(r.Candidates)
	return r
}

// Peers returns the devices in use, in order; each is one of its own peers.
func (d *Device) Peers() []*Device { return slices.Clone(d.devices) }

// Stats returns the counters of the programs of all devices, and of this one's buffers.
func (d *Device) Stats() Stats {
	s := d.programs.snapshot()
	if d.plugin != nil {
		s.FromDisk, s.Rewritten = d.plugin.FromDisk()-d.before[0], d.plugin.Rewritten()-d.before[1]
	}
	s.BufferBytes = d.held.Load()
	s.BytesUp, s.BytesDown = d.up.Load(), d.down.Load()
	return s
}

// HostVisible reports whether buffers are in the host's memory, so that [Buffer.View] works.
func (d *Device) HostVisible() bool { return d.hostVisible }

// Close waits for the calls in progress, compilations included, and frees the backend. Afterwards the device's programs
// and buffers return [ErrClosed]. It may be called twice.
func (d *Device) Close() error {
	d.mu.Lock()
	closed := d.closing
	d.closing = true
	d.mu.Unlock()
	d.inside.Wait()
	if !closed {
		d.trim.Stop()
		d.programs.purge()
		d.backend.Finalize()
	}
	return nil
}

// enter announces a call that uses the backend; leave must follow. It is not a lock: calls may nest.
func (c *client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return ErrClosed
	}
	c.inside.Add(1)
	return nil
}

func (c *client) leave() { c.inside.Done() }

// Kind is what a plugin computes on.
type Kind string

// kind returns the plugin's kind; CPU for the pure-Go backend.
func (c *client) kind() Kind {
	if c.report.Name == "xla:"+string(CUDA) {
		return CUDA
	}
	return CPU
}

// The kinds of plugins.
const (
	CPU  Kind = "cpu"
	CUDA Kind = "cuda"
)

func (k Kind) known() bool { return k == CPU || k == CUDA }

// Report says which backend was opened and why the other candidates were not.
type Report struct {
	Name       string      `json:"name"`        // "xla:cpu", "xla:cuda" or "go"
	Plugin     string      `json:"plugin"`      // the plugin's path; empty for the pure-Go backend
	APIVersion string      `json:"api_version"` // the plugin's PJRT API, such as "0.106"
	Devices    []string    `json:"devices"`     // descriptions of the devices that the backend shows
	Used       int         `json:"used"`        // number of these in use, from the first
	GPU        bool        `json:"gpu"`         // the machine has an NVIDIA GPU
	Plugins    bool        `json:"plugins"`     // this build can load plugins
	Candidates []Candidate `json:"candidates"`  // best first
	// MemoryFraction is the share of a GPU's memory that the process may use; 0 on other backends.
	MemoryFraction float64 `json:"memory_fraction,omitempty"`
	// Allocator is the path of the library that provides malloc; empty in a build without cgo.
	Allocator string `json:"allocator"`
	// AllocatorReason says why [PreloadAllocator] has not loaded mimalloc; empty if it has, or was not called.
	AllocatorReason string `json:"allocator_reason,omitempty"`
	// ProgramCache is the folder of compiled programs; empty if they are not kept.
	ProgramCache string `json:"program_cache"`
}

// Candidate is a plugin file that was considered.
type Candidate struct {
	Path   string `json:"path"`
	Source string `json:"source"` // where it was found, such as "project .venv"
	Kind   Kind   `json:"kind"`
	Used   bool   `json:"used"`
	Reason string `json:"reason,omitempty"` // why it cannot be used; empty if it was used or not tried
}
