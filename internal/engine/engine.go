package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Config configures an engine. The zero value of each optional field means its default.
type Config struct {
	Dir            string            // holds models/ schedules/ bases/ datasets/ runs/; created if missing
	Version        string            // of the program, for ServerInfo
	MaxBytes       int64             // bytes a reply may have; default 1 GiB
	MaxUploadBytes int64             // bytes an upload may have; default 4 GiB
	MaxRequests    int64             // operations under way at a time; default 256, beyond BUSY
	Precision      kernels.Precision // of models and runs that name none; default float32
	Seats          int64             // evaluations, or compilations, that may use the device at a time; default 4
	Warm           []string          // models, or MODEL:SCHEDULE, whose sampling programs are compiled in the background from the start
	Apart          bool              // evaluate every request by itself, though others wait for the same network
	Logger         *slog.Logger      // default slog.Default()
}

func (c Config) withDefaults() Config {
	if c.MaxBytes <= 0 {
		c.MaxBytes = 1 << 30
	}
	if c.MaxUploadBytes <= 0 {
		c.MaxUploadBytes = 4 << 30
	}
	if c.MaxRequests <= 0 {
		c.MaxRequests = 256
	}
	if c.Seats <= 0 {
		c.Seats = 4
	}
	if c.Precision == "" {
		c.Precision = kernels.Float32
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Engine serves one folder on one device. Its methods may be called concurrently.
type Engine struct {
	cfg     Config
	log     *slog.Logger
	dev     *device.Device
	start   time.Time
	folders folders
	turns   turns
	joint   *joint
	active  atomic.Int64 // operations under way
	steps   atomic.Int64 // training steps taken
	warming *warming     // nil: none

	changes sync.Mutex // held by whoever changes what is stored, from the check of a name to its use

	mu        sync.RWMutex // guards the maps; held for moments only, and taken after changes
	models    map[string]*model
	versions  map[string]int // of models, by name
	schedules map[string]namedSchedule
	bases     map[string]*basis.Basis
	made      map[basisKey]*basis.Basis
	datasets  map[string]dataset // those that have been opened
	runs      map[string]*run
}

// Open reads the folder and makes ready to serve it on dev, which stays the caller's to close. What cannot be read is
// logged and left out; it never keeps the rest from being served.
func Open(ctx context.Context, cfg Config, dev *device.Device) (*Engine, error) {
	cfg = cfg.withDefaults()
	folders, err := makeFolders(cfg.Dir)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, log: cfg.Logger, dev: dev, start: time.Now(), folders: folders, turns: newTurns(cfg.Seats),
		models: map[string]*model{}, versions: map[string]int{}, schedules: map[string]namedSchedule{},
		bases: map[string]*basis.Basis{}, made: map[basisKey]*basis.Basis{}, datasets: map[string]dataset{}, runs: map[string]*run{},
	}
	e.joint = &joint{turns: e.turns, room: e.room(), stops: map[network]*stop{}}
	for _, folder := range []string{folders.models, folders.schedules, folders.bases, folders.datasets, folders.runs} {
		if err := atomicdir.Sweep(folder); err != nil {
			e.log.Warn("leftovers of an earlier crash stay", "error", err)
		}
	}
	for _, scan := range []func(){e.scanBases, e.scanSchedules, e.scanModels, e.scanRuns} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		scan()
	}
	e.warm()
	return e, nil
}

// Close ends the warm-up, pauses the runs, stores their states and releases the device memory of runs and models. Operations must have
// ended.
func (e *Engine) Close(ctx context.Context) error {
	e.warming.close()
	err := e.closeRuns(ctx)
	for _, name := range e.modelNames() {
		if _, drop := e.dropModel(name); drop != nil && err == nil {
			err = drop
		}
	}
	return err
}
