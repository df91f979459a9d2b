package device

import (
	"sync"

	"github.com/gomlx/gomlx/backends"
)

// Device is an open backend with its compiled programs. It is safe for
// concurrent use.
type Device struct {
	cfg         Config
	backend     backends.Backend
	programs    *cache
	report      Report
	hostVisible bool // buffers can be viewed in place
	pureGo      bool

	mu     sync.RWMutex // shared by every use of the backend, exclusive in Close
	closed bool
}

// Open finds a backend and starts it. It never downloads anything. Where
// [Config.Plugin] or ANISOFLIGHT_PLUGIN names a file, that file is used or Open
// fails with a [*PluginError]; a search that finds nothing usable ends with the
// pure-Go backend and one warning.
func Open(cfg Config) (*Device, error) {
	cfg = cfg.withDefaults()
	d := &Device{cfg: cfg}
	if err := d.start(); err != nil {
		return nil, err
	}
	programs, err := newCache(d.backend, cfg.Programs)
	if err != nil {
		return nil, err
	}
	d.programs = programs
	return d, nil
}

// Name says what runs the programs, such as "xla:cpu" or "go".
func (d *Device) Name() string { return d.report.Name }

// Report tells what was found when the device was opened, and why the rest was not used.
func (d *Device) Report() Report { return d.report }

// Stats returns the program cache's counters.
func (d *Device) Stats() Stats { return d.programs.snapshot() }

// Close waits for running programs and frees the backend. Buffers and programs
// of the device answer [ErrClosed] afterwards. Closing twice is allowed.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.programs.close()
	d.backend.Finalize()
	return nil
}

// hostMemory reports whether buffers are the pure-Go backend's own slices.
func (d *Device) hostMemory() bool { return d.pureGo }
