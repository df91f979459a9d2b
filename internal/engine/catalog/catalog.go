package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Config configures a [Catalog].
type Config struct {
	Dir       string                         // holds models/ schedules/ plans/ bases/ datasets/ runs/; created if missing
	Program   string                         // name and version, for the provenance of schedules
	Precision kernels.Precision              // of models that name none
	Device    func() (*device.Device, error) // the device, opened when it is first needed
	Logger    *slog.Logger
}

// Catalog is what is stored in one folder. Its methods may be called concurrently.
type Catalog struct {
	cfg     Config
	folders Folders

	changes sync.Mutex // held by whoever changes what is stored, from the check of a name to its use

	mu        sync.RWMutex // guards the maps; held for moments only, and taken after changes
	models    shelf[*Model]
	versions  map[string]int // of models, by name
	schedules folders[Schedule]
	plans     folders[*Plan]
	bases     folders[*basis.Basis]
	formulas  map[basisKey]*basis.Basis // bases by formula
	datasets  map[string]dataset        // those that have been opened
}

// Folders returns the folders of the data folder.
func (c *Catalog) Folders() Folders { return c.folders }

// WithProvenance returns a schedule with a provenance that has the program and the present time.
func (c *Catalog) WithProvenance(s *schedule.Schedule, p schedule.Provenance) *schedule.Schedule {
	return s.WithProvenance(c.Stamped(p))
}

// Stamped returns a provenance with the program and the present time.
func (c *Catalog) Stamped(p schedule.Provenance) schedule.Provenance {
	p.Program, p.Created = c.cfg.Program, time.Now().UTC().Truncate(time.Second)
	return p
}

// Open reads a data folder and creates its folders if they are missing. What cannot be read is logged and left out.
func Open(ctx context.Context, cfg Config) (*Catalog, error) {
	places, err := FoldersOf(cfg.Dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range append(places.all(), cfg.Dir) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
		if err := atomicdir.Sweep(folder); err != nil {
			cfg.Logger.Warn("leftovers of an earlier crash stay", "error", err)
		}
	}
	c := &Catalog{
		cfg: cfg, folders: places, versions: map[string]int{},
		formulas: map[basisKey]*basis.Basis{}, datasets: map[string]dataset{},
	}
	c.models = newShelf[*Model]("model", &c.mu)
	c.schedules = folders[Schedule]{
		shelf: newShelf[Schedule]("schedule", &c.mu), dir: places.Schedules, suffix: ".schedule",
		load: func(name, folder string) (Schedule, error) {
			parts, err := checkpoint.LoadSchedule(folder)
			if err != nil {
				return Schedule{}, err
			}
			return newSchedule(name, parts)
		},
		save: func(folder string, s Schedule) error { return checkpoint.SaveSchedule(folder, s.Parts) },
	}
	c.plans = folders[*Plan]{
		shelf: newShelf[*Plan]("plan", &c.mu), dir: places.Plans, suffix: ".plan", load: loadPlan, save: savePlan,
	}
	c.bases = folders[*basis.Basis]{
		shelf: newShelf[*basis.Basis]("basis", &c.mu), dir: places.Bases, suffix: ".basis",
		load: func(_, folder string) (*basis.Basis, error) { return checkpoint.LoadBasis(folder) },
		save: func(folder string, b *basis.Basis) error { return checkpoint.SaveBasis(folder, b, true) },
	}
	for _, scan := range []func(*slog.Logger){c.bases.scan, c.plans.scan, c.schedules.scan, c.moveSamplers, c.scanModels} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		scan(cfg.Logger)
	}
	return c, nil
}

// Close releases the models.
func (c *Catalog) Close() {
	for _, m := range c.Models() {
		_ = c.dropModel(m.Name)
	}
}

// free checks that a new thing may have a name: that it is not reserved, nor taken if nothing is to be replaced.
func free(kind, name string, inUse, replace bool) error {
	if err := CheckReserved(name); err != nil {
		return err
	}
	if inUse && !replace {
		return NameTaken(kind, name)
	}
	return nil
}

// NameTaken returns the error of a name that is in use.
func NameTaken(what, name string) error {
	return api.Errorf(api.NameTaken, "A %s is already called %q", what, name).
		WithHint("Choose another name, or set replace.")
}
