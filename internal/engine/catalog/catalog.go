package catalog

import (
	"log/slog"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Config configures a catalogue.
type Config struct {
	Dir       string                         // holds models/ schedules/ bases/ datasets/ runs/; created if missing
	Program   string                         // that signs new schedules, such as "anisoflight 1.2"
	Precision kernels.Precision              // of models that name none
	Device    func() (*device.Device, error) // the device, opened where it is first needed
	// bytes of weights that may be loaded at a time; 0: what the device's memory allows
	ModelBytes int64
	Logger     *slog.Logger
}

// Catalog is what is stored in one folder. Its methods may be called concurrently.
type Catalog struct {
	cfg     Config
	log     *slog.Logger
	folders Folders

	changes sync.Mutex // held by whoever changes what is stored, from the check of a name to its use

	mu        sync.RWMutex // guards the maps; held for moments only, and taken after changes
	models    map[string]*Model
	versions  map[string]int // of models, by name
	schedules map[string]Schedule
	bases     map[string]storedBasis
	broken    broken
	made      map[basisKey]*basis.Basis
	datasets  map[string]dataset // those that have been opened

	loaded residents
	hashes hashes
}

// Folders returns the places of what is stored.
func (c *Catalog) Folders() Folders { return c.folders }

// Signed returns a new schedule with where it came from, dated and signed.
func (c *Catalog) Signed(s *schedule.Schedule, p schedule.Provenance) *schedule.Schedule {
	p.Program, p.Created = c.cfg.Program, time.Now().UTC().Truncate(time.Second)
	return s.WithProvenance(p)
}
