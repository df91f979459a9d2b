package device

import (
	"slices"
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
