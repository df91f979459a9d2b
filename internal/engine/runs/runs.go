package runs

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/setting"
)

// Config configures the runs of a folder.
type Config struct {
	Catalog   *catalog.Catalog
	Queue     *batch.Queue                   // of the device's slots
	Device    func() (*device.Device, error) // the device, opened where it is first needed
	Precision kernels.Precision              // of runs that name none
	Logger    *slog.Logger
}

// Runs are the training runs of one folder. Its methods may be called concurrently.
type Runs struct {
	cfg   Config
	log   *slog.Logger
	steps atomic.Int64 // taken

	changes sync.Mutex // held by whoever creates or deletes a run

	mu   sync.RWMutex // guards the map
	runs map[string]*Run
}

// Open lists the stored runs. Their training states are read when they are needed.
func Open(cfg Config) *Runs {
	s := &Runs{cfg: cfg, log: cfg.Logger, runs: map[string]*Run{}}
	folder := cfg.Catalog.Folders().Runs
	for _, name := range catalog.StoredNames(folder, "") {
		st, err := readStatus(filepath.Join(folder, name, "status.json"))
		var c train.Config
		if err == nil {
			c, err = readConfig(st.Config)
		}
		if err != nil {
			s.log.Warn("run left out", "name", name, "error", err)
			continue
		}
		s.runs[name] = s.newRun(name, st, c)
		if err := atomicdir.Sweep(s.runs[name].folder); err != nil {
			s.log.Warn("leftovers of an earlier crash stay", "run", name, "error", err)
		}
	}
	return s
}

// Steps returns how many training steps have been taken.
func (s *Runs) Steps() int64 { return s.steps.Load() }

// readConfig reads a training configuration strictly. Where zero stands for a field's default, a zero that was sent is
// refused: it would silently become another number.
func readConfig(body json.RawMessage) (cfg train.Config, err error) {
	if err := api.DecodeStruct(body, &cfg); err != nil {
		return cfg, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		return cfg, err
	}
	for _, name := range cfg.Unset() {
		if value, ok := sent[name]; ok {
			return cfg, api.Errorf(api.BadRequest, "%s must be positive, got %s", name, value).
				WithHint("Leave it out for its default.")
		}
	}
	return cfg, nil
}

// Named finds a run.
func (s *Runs) Named(name string) (*Run, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.runs[name]
	if !ok {
		return nil, api.NotFound(api.RunNotFound, "run", name, slices.Sorted(maps.Keys(s.runs)))
	}
	return r, nil
}

// All lists the runs in the order of their names.
func (s *Runs) All() []*Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*Run
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		all = append(all, s.runs[name])
	}
	return all
}

// Describe is Info with the configuration.
func (r *Run) Describe() api.RunInfo {
	info := r.Info()
	info.Config = r.status.Config // never changes
	return info
}

// Create makes a run. What its configuration names must be there and fit.
func (s *Runs) Create(ctx context.Context, req api.CreateRun, progress func(api.Meta)) (*Run, error) {
	cfg, err := readConfig(req.Config)
	if err != nil {
		return nil, err
	}
	if cfg.Precision == "" {
		cfg.Precision = string(s.cfg.Precision)
	}
	if err := s.free(req); err != nil { // before the work; asked again below
		return nil, err
	}
	src, err := s.sources(ctx, cfg, progress)
	if err != nil {
		return nil, err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	if err := s.free(req); err != nil {
		return nil, err
	}
	old, _ := s.Named(req.Name)
	training, err := train.New(cfg, src)
	if err != nil {
		return nil, err
	}
	full := training.Config()
	text, err := json.Marshal(full)
	if err == nil && old != nil { // the old one goes only when the new one can be
		err = s.remove(ctx, old)
	}
	if err != nil {
		training.Close()
		return nil, err
	}
	r := s.newRun(req.Name, status{State: Created, Created: time.Now().UTC(), Memory: memoryOf(training), Config: text},
		full)
	r.train, r.dirty, r.read = training, true, true
	if err := r.storeNew(ctx); err != nil {
		training.Close()
		return nil, errors.Join(err, os.RemoveAll(r.folder))
	}
	s.mu.Lock()
	s.runs[req.Name] = r
	s.mu.Unlock()
	return r, nil
}

// free checks that a run may be created under a name.
func (s *Runs) free(req api.CreateRun) error {
	if err := catalog.CheckReserved(req.Name); err != nil {
		return err
	}
	if _, err := s.Named(req.Name); err == nil && !req.Replace {
		return catalog.NameTaken("run", req.Name)
	}
	return nil
}

// storeNew writes the folder of a new run.
func (r *Run) storeNew(ctx context.Context) error {
	if err := os.Mkdir(r.folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.store(ctx)
}

// sources finds what a configuration names, and makes the basis that its family wants made.
func (s *Runs) sources(ctx context.Context, cfg train.Config, progress func(api.Meta)) (src train.Sources, err error) {
	if cfg, err = resolved(cfg); err != nil {
		return src, err
	}
	if src.Device, err = s.cfg.Device(); err != nil {
		return src, err
	}
	if src.Dataset, err = s.cfg.Catalog.Dataset(cfg.Dataset); err != nil {
		return src, err
	}
	if err := src.Dataset.Check(ctx); err != nil { // before a step holds the device
		return src, err
	}
	if cfg.Model != "" {
		m, err := s.cfg.Catalog.Model(cfg.Model)
		if err != nil {
			return src, err
		}
		if src.Model, err = m.Stored(); err != nil {
			return src, err
		}
	}
	if cfg.Schedule != "" {
		ref := api.ScheduleRef{Name: cfg.Schedule, T: cfg.T}
		if ref.T == 0 {
			ref.T = api.DefaultT
		}
		from, err := s.cfg.Catalog.ScheduleNamed(ref)
		if err != nil {
			return src, err
		}
		src.Schedule, src.ScheduleBasis = from.Schedule, from.Basis
	}
	src.Basis, err = s.familyBasis(ctx, cfg, src, progress)
	return src, err
}

// resolved fills in what defaults to constants, and names the first field that is missing or wrong, before any work.
func resolved(cfg train.Config) (train.Config, error) {
	for _, f := range []struct{ name, value string }{{"stage", cfg.Stage}, {"dataset", cfg.Dataset}} {
		if f.value == "" {
			return cfg, api.Errorf(api.BadRequest, "%s is missing", f.name)
		}
	}
	return cfg.Resolve()
}

// familyBasis finds the basis of a run's family, or makes it of the run's data set. What a formula gives needs none;
// another basis may come with the schedule or the model that the run starts from, and what was learned goes on with it.
func (s *Runs) familyBasis(
	ctx context.Context, cfg train.Config, src train.Sources, progress func(api.Meta),
) (*basis.Basis, error) {
	family := cfg.Family
	fits := func(own *schedule.Schedule, b *basis.Basis) bool {
		return own != nil && b != nil && own.Family().Basis == family.Basis && (family.K == 0 || family.K == b.K())
	}
	switch {
	case basis.ByFormula(family.Basis):
		return nil, nil
	case fits(src.Schedule, src.ScheduleBasis):
		return src.ScheduleBasis, nil
	case src.Model != nil && fits(src.Model.Schedule, src.Model.Basis):
		return src.Model.Basis, nil
	case catalog.StoredByName(family.Basis):
		return s.cfg.Catalog.Basis(family.Basis)
	}
	d, _ := basis.Lookup(family.Basis)
	b, _, err := passes.PCA(ctx, src.Dataset, passes.PCASettings{
		K: family.K, PerClass: d.PerClass, Components: d.Components, Classes: classesOf(cfg,
			src), Progress: api.Sparsely(progress),
	})
	var field *setting.Error
	if errors.As(err, &field) && field.Field == "k" {
		err = &setting.Error{Field: "family.k", Msg: field.Msg}
	}
	return b, err
}

// classesOf is the number of classes that a run's network knows, 0 where it cannot be told.
func classesOf(cfg train.Config, src train.Sources) int {
	if src.Model != nil {
		return src.Model.Net.Shape().Labels
	}
	net, err := checkpoint.ParseNetwork(cfg.Network)
	if err != nil { // which is said where the run is made
		return 0
	}
	return net.Shape().Labels
}

// Delete deletes a run and its folder.
func (s *Runs) Delete(ctx context.Context, name string) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	r, err := s.Named(name)
	if err != nil {
		return err
	}
	return s.remove(ctx, r)
}

// remove takes a run that is not at work out of the catalogue and deletes it. The caller holds changes.
func (s *Runs) remove(ctx context.Context, r *Run) error {
	r.mu.Lock()
	busy := r.stop != nil || r.stepping > 0
	r.mu.Unlock()
	if busy {
		return api.Errorf(api.RunNotRunnable, "The run %q is at work", r.name).WithHint("CancelRun it first.")
	}
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.disown()
	s.mu.Lock()
	delete(s.runs, r.name)
	s.mu.Unlock()
	r.closeTraining()
	r.update(func() { r.status.State = Cancelled })
	if err := os.Remove(r.statusPath()); err != nil && !catalog.Missing(err) {
		return err
	}
	return atomicdir.Remove(r.folder)
}
