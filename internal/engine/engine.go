package engine

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/contents"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// Config configures an engine. The zero value of each optional field means its default.
type Config struct {
	Dir            string            // holds models/ schedules/ bases/ datasets/ runs/; created if missing
	Version        string            // of the program, for ServerInfo
	MaxBytes       int64             // limit of a reply; default 1 GiB
	MaxUploadBytes int64             // limit of an upload; default 4 GiB. All open uploads together: twice that
	MaxRequests    int64             // operations at a time, more are BUSY; default 256
	MaxWatchers    int64             // operations that watch runs at a time, more are BUSY; default 1024
	Precision      kernels.Precision // of models and runs that name none; default float32
	Slots          int64             // evaluations or compilations at a time; default 4 for each device
	Apart          bool              // no dynamic batching: every evaluation has a batch of its own
	Logger         *slog.Logger      // default slog.Default()

	// Device is the device; the caller closes it. If it is nil, OpenDevice opens one when an operation first needs it, and
	// the engine closes that.
	Device     *device.Device
	OpenDevice func() (*device.Device, error)

	// World are the processes that train one run together; this process is the first. Nil: this process trains alone.
	World *processes.World
}

func (c Config) withDefaults() Config {
	orDefault := func(field *int64, value int64) {
		if *field <= 0 {
			*field = value
		}
	}
	orDefault(&c.MaxBytes, 1<<30)
	orDefault(&c.MaxUploadBytes, 4<<30)
	orDefault(&c.MaxRequests, 256)
	orDefault(&c.MaxWatchers, 1024)
	c.Precision, c.Logger = cmp.Or(c.Precision, kernels.Float32), cmp.Or(c.Logger, slog.Default())
	if c.OpenDevice == nil {
		c.OpenDevice = func() (*device.Device, error) { return device.Open(device.Config{}) }
	}
	return c
}

// slotsPerDevice is the default of Config.Slots for each device.
const slotsPerDevice = 4

// Engine serves one folder on the devices of one process. Its methods may be called concurrently.
type Engine struct {
	cfg      Config
	device   lazyDevice
	start    time.Time
	batcher  *batch.Batcher
	catalog  *catalog.Catalog
	runs     *runs.Runs
	active   atomic.Int64 // operations that do not watch runs
	watching atomic.Int64 // operations that watch runs
	contents contents.Contents
	handlers map[string]handler // by operation
}

// Open reads the folder. What cannot be read is logged and left out, and the rest is served.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	e := &Engine{cfg: cfg, start: time.Now()}
	if e.batcher = batch.New(batch.NewQueue(cfg.Slots), cfg.Apart); cfg.Slots <= 0 {
		e.batcher.Widen(slotsPerDevice)
	}
	e.device.open = func() (*device.Device, error) {
		dev, err := cfg.OpenDevice()
		if err == nil && cfg.Slots <= 0 {
			e.batcher.Widen(slotsPerDevice * (len(dev.Peers()) - 1))
		}
		return dev, err
	}
	if cfg.Device != nil {
		cfg.OpenDevice = func() (*device.Device, error) { return cfg.Device, nil }
		if _, err := e.device.get(); err != nil {
			return nil, err
		}
	}
	var err error
	e.catalog, err = catalog.Open(ctx, catalog.Config{
		Dir: cfg.Dir, Program: "anisoflight " + cfg.Version, Precision: cfg.Precision, Device: e.device.get,
		Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	e.runs = runs.Open(runs.Config{
		Catalog: e.catalog, Batcher: e.batcher, Device: e.device.get, Precision: cfg.Precision,
		Logger: cfg.Logger, World: cfg.World, Version: cfg.Version, MaxBytes: cfg.MaxBytes,
	})
	e.contents.Catalog, e.contents.MaxBytes, e.contents.MaxUploadBytes = e.catalog, cfg.MaxBytes, cfg.MaxUploadBytes
	e.handlers = e.newHandlers()
	return e, nil
}

// PauseAndStoreAll pauses and stores all runs, and lets none start from then on. A server that ends calls it before it
// waits for its open requests.
func (e *Engine) PauseAndStoreAll(ctx context.Context) error { return e.runs.PauseAndStoreAll(ctx) }

// Close pauses and stores the runs, and frees the device memory of runs and models. All operations must have ended.
func (e *Engine) Close(ctx context.Context) error {
	err := e.runs.Close(ctx)
	e.catalog.Close()
	if dev := e.device.opened(); dev != nil && e.cfg.Device == nil {
		_ = dev.Close()
	}
	return err
}

// lazyDevice opens the device when it is first needed.
type lazyDevice struct {
	mu   sync.Mutex
	dev  *device.Device
	open func() (*device.Device, error)
}

func (d *lazyDevice) get() (*device.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dev != nil {
		return d.dev, nil
	}
	var err error
	d.dev, err = d.open()
	return d.dev, err
}

// opened returns the device if it is open.
func (d *lazyDevice) opened() *device.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dev
}
