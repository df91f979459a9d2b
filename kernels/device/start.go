package device

import (
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// Open finds a backend and starts it. It never downloads anything. Where
// [Config.Plugin] or ANISOFLIGHT_PLUGIN names a file, that file is used or Open
// fails with a [*PluginError]; a search that finds nothing usable ends with the
// pure-Go backend and one warning. Of several devices it returns the first; see [Device.Peers].
func Open(cfg Config) (*Device, error) {
	h := thisHost()
	cfg = cfg.withDefaults(h.env)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	d := &Device{client: &client{cfg: cfg}}
	if err := d.start(h); err != nil {
		return nil, err
	}
	if err := d.share(); err != nil {
		d.backend.Finalize()
		return nil, err
	}
	programs, err := newCache(cfg.Programs, d.enter, d.leave)
	if err != nil {
		return nil, err
	}
	d.programs = programs
	return d, nil
}

// start opens the first backend that works and writes the report.
func (d *Device) start(h host) error {
	d.report.GPU = h.gpu
	d.report.Plugins = shim.Available
	d.report.Allocator = findAllocator(h)
	if d.cfg.Plugin == "go" {
		return d.startGo()
	}
	found, only := search(d.cfg, h)
	d.report.Candidates = found
	var refused []Candidate
	for i := range found {
		err := d.tryCandidate(&found[i])
		switch {
		case err != nil && only:
			return err
		case err != nil:
			refused = append(refused, found[i])
		case found[i].Used:
			for _, c := range refused {
				d.cfg.Logger.Warn("plugin not used", "path", c.Path, "reason", c.Reason)
			}
			return nil
		}
	}
	if d.cfg.Plugin == string(CUDA) {
		return &PluginError{Path: "cuda", Source: d.cfg.source, Reason: d.noCUDA()}
	}
	reason := "no plugin found; run `make build`, or see `anisoflight doctor`"
	for _, c := range refused {
		reason = c.Path + ": " + c.Reason
	}
	d.cfg.Logger.Warn("using the pure-Go backend, about 20 times slower than XLA", "reason", reason)
	return d.startGo()
}

// tryCandidate opens one candidate, unless the search has set a reason against it, and notes in it what came of that.
func (d *Device) tryCandidate(c *Candidate) error {
	if c.Reason != "" {
		return nil
	}
	err := vet(c.Path, c.Kind, d.cfg)
	if err == nil {
		err = d.startXLA(*c)
	}
	if err == nil {
		c.Used = true
		return nil
	}
	var refused *PluginError
	if !errors.As(err, &refused) {
		refused = &PluginError{Path: c.Path, Reason: err.Error()}
	}
	refused.Source = c.Source
	c.Reason = refused.Reason
	if refused.Err != nil {
		c.Reason += ": " + refused.Err.Error()
	}
	return refused
}

func (d *Device) startXLA(c Candidate) error {
	o, err := openXLA(c.Path, c.Kind, d.cfg)
	if err != nil {
		return err
	}
	d.backend, d.hostVisible = o.backend, c.Kind == CPU
	before, placesBefore := o.fromDisk(), o.rewritten()
	d.fromDisk = func() int64 { return o.fromDisk() - before }
	d.rewritten = func() int64 { return o.rewritten() - placesBefore }
	d.report.Name = "xla:" + string(c.Kind)
	d.report.Plugin, d.report.APIVersion = c.Path, o.version
	d.report.ProgramCache = d.cfg.programDir()
	if c.Kind == CUDA {
		d.report.Memory = &MemoryShare{Fraction: d.cfg.MemoryFraction, Preallocate: d.cfg.Preallocate}
	}
	d.describe()
	return nil
}

func (d *Device) startGo() error {
	// Its default mode of parallel operations deadlocks on two cores.
	b, err := simplego.New("ops_sequential")
	if err != nil {
		return fmt.Errorf("pure-Go backend: %w", err)
	}
	d.backend, d.pureGo, d.hostVisible = b, true, true
	d.fromDisk = func() int64 { return 0 }
	d.rewritten = d.fromDisk
	d.report.Name = "go"
	d.describe()
	return nil
}

func (d *Device) noCUDA() string {
	for _, c := range d.report.Candidates {
		if c.Kind == CUDA && c.Reason != "" {
			return fmt.Sprintf("no CUDA plugin can be used; %s: %s", c.Path, c.Reason)
		}
	}
	return "no CUDA plugin found; install one with `.venv/bin/pip install jax-cuda13-pjrt`, or choose \"cpu\""
}

func (d *Device) describe() {
	for i := range d.backend.NumDevices() {
		d.report.Devices = append(d.report.Devices, fmt.Sprint(d.backend.DeviceDescription(backends.DeviceNum(i))))
	}
}

// share makes the devices that the configuration asks for, of which d is the first.
func (d *Device) share() error {
	n, err := d.cfg.count(d.Name(), d.backend.NumDevices())
	if err != nil {
		return err
	}
	d.devices, d.report.Used = []*Device{d}, n
	for k := 1; k < n; k++ {
		d.devices = append(d.devices, &Device{client: d.client, ordinal: backends.DeviceNum(k)})
	}
	return nil
}
