package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/setting"
)

// scanRuns lists the stored runs. Their training states are read when they are needed.
func (e *Engine) scanRuns() {
	for _, name := range storedNames(e.folders.runs, "") {
		s, err := readStatus(filepath.Join(e.folders.runs, name, "status.json"))
		var cfg train.Config
		if err == nil {
			cfg, err = readConfig(s.Config)
		}
		if err != nil {
			e.log.Warn("run left out", "name", name, "error", err)
			continue
		}
		e.runs[name] = e.newRun(name, s, cfg)
		if err := atomicdir.Sweep(e.runs[name].folder); err != nil {
			e.log.Warn("leftovers of an earlier crash stay", "run", name, "error", err)
		}
	}
}

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
			return cfg, api.Errorf(api.BadRequest, "%s must be positive, got %s", name, value).WithHint("Leave it out for its default.")
		}
	}
	return cfg, nil
}

func (e *Engine) runNamed(name string) (*run, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	r, ok := e.runs[name]
	if !ok {
		return nil, api.Errorf(api.RunNotFound, "No run is called %q", name).WithHint("There are: %s.", listed(e.runs))
	}
	return r, nil
}

func (e *Engine) runInfos() []api.RunInfo {
	infos := []api.RunInfo{}
	for _, r := range e.allRuns() {
		infos = append(infos, r.info())
	}
	return infos
}

// allRuns lists the runs in the order of their names.
func (e *Engine) allRuns() []*run {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var all []*run
	for _, name := range slices.Sorted(maps.Keys(e.runs)) {
		all = append(all, e.runs[name])
	}
	return all
}

// getRun describes a run with its configuration.
func (e *Engine) getRun(_ context.Context, req api.RunName) (any, error) {
	r, err := e.runNamed(req.Run)
	if err != nil {
		return nil, err
	}
	return r.describe(), nil
}

func (r *run) describe() api.RunInfo {
	info := r.info()
	info.Config = r.status.Config // never changes
	return info
}

// createRun makes a run. What its configuration names must be there and fit.
func (e *Engine) createRun(ctx context.Context, req api.CreateRun, progress func(api.Meta)) (any, error) {
	cfg, err := readConfig(req.Config)
	if err != nil {
		return nil, err
	}
	if cfg.Precision == "" {
		cfg.Precision = string(e.cfg.Precision)
	}
	if err := e.freeRun(req); err != nil { // before the work; asked again below
		return nil, err
	}
	src, err := e.sources(ctx, cfg, progress)
	if err != nil {
		return nil, err
	}
	e.changes.Lock()
	defer e.changes.Unlock()
	if err := e.freeRun(req); err != nil {
		return nil, err
	}
	old, _ := e.runNamed(req.Name)
	training, err := train.New(cfg, src)
	if err != nil {
		return nil, err
	}
	full := training.Config()
	text, err := json.Marshal(full)
	if err == nil && old != nil { // the old one goes only when the new one can be
		err = e.removeRun(ctx, old)
	}
	if err != nil {
		training.Close()
		return nil, err
	}
	r := e.newRun(req.Name, status{State: created, Created: time.Now().UTC(), Memory: memoryOf(training), Config: text}, full)
	r.train, r.dirty, r.read = training, true, true
	if err := r.storeNew(ctx); err != nil {
		training.Close()
		return nil, errors.Join(err, os.RemoveAll(r.folder))
	}
	e.mu.Lock()
	e.runs[req.Name] = r
	e.mu.Unlock()
	return r.describe(), nil
}

// freeRun tells whether a run may be created under a name.
func (e *Engine) freeRun(req api.CreateRun) error {
	if err := checkReserved(req.Name); err != nil {
		return err
	}
	if _, err := e.runNamed(req.Name); err == nil && !req.Replace {
		return nameTaken("run", req.Name)
	}
	return nil
}

// storeNew writes the folder of a new run.
func (r *run) storeNew(ctx context.Context) error {
	if err := os.Mkdir(r.folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.store(ctx)
}

// sources finds what a configuration names, and makes the basis that its family wants made.
func (e *Engine) sources(ctx context.Context, cfg train.Config, progress func(api.Meta)) (src train.Sources, err error) {
	if cfg, err = resolved(cfg); err != nil {
		return src, err
	}
	src.Device = e.dev
	if src.Dataset, err = e.datasetNamed(cfg.Dataset); err != nil {
		return src, err
	}
	if cfg.Model != "" {
		if src.Model, err = e.exportModel(cfg.Model); err != nil {
			return src, err
		}
	}
	if cfg.Schedule != "" {
		ref := api.ScheduleRef{Name: cfg.Schedule, T: cfg.T}
		if ref.T == 0 {
			ref.T = api.DefaultT
		}
		s, err := e.scheduleNamed(ref)
		if err != nil {
			return src, err
		}
		src.Schedule, src.ScheduleBasis = s.Schedule, s.basis
	}
	src.Basis, err = e.familyBasis(ctx, cfg, src, progress)
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
func (e *Engine) familyBasis(ctx context.Context, cfg train.Config, src train.Sources, progress func(api.Meta)) (*basis.Basis, error) {
	family := cfg.Family
	fits := func(s *schedule.Schedule, b *basis.Basis) bool {
		return s != nil && b != nil && s.Family().Basis == family.Basis && (family.K == 0 || family.K == b.K())
	}
	switch {
	case basis.ByFormula(family.Basis):
		return nil, nil
	case fits(src.Schedule, src.ScheduleBasis):
		return src.ScheduleBasis, nil
	case src.Model != nil && fits(src.Model.Schedule, src.Model.Basis):
		return src.Model.Basis, nil
	case storedByName(family.Basis):
		return e.basisNamed(family.Basis)
	}
	d, _ := basis.Lookup(family.Basis)
	b, _, err := e.components(ctx, src.Dataset, passes.PCASettings{
		K: family.K, PerClass: d.PerClass, Components: d.Components, Classes: classesOf(cfg, src),
	}, progress)
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

// exportModel copies a loaded model from the device, for a run to start from.
func (e *Engine) exportModel(name string) (*checkpoint.Model, error) {
	m, err := e.modelNamed(name)
	if err != nil {
		return nil, err
	}
	if err := m.hold(); err != nil {
		return nil, err
	}
	defer m.release()
	values, err := m.weights.Export()
	if err != nil {
		return nil, err
	}
	return &checkpoint.Model{Net: m.stored.Net, Values: values, Schedule: m.sched, Basis: m.basis, Hash: m.hash}, nil
}

// deleteRun deletes a run and its folder.
func (e *Engine) deleteRun(ctx context.Context, req api.RunName) (any, error) {
	e.changes.Lock()
	defer e.changes.Unlock()
	r, err := e.runNamed(req.Run)
	if err != nil {
		return nil, err
	}
	return named("run", req.Run, e.removeRun(ctx, r))
}

// removeRun takes a run that is not at work out of the catalogue and deletes it. The caller holds changes.
func (e *Engine) removeRun(ctx context.Context, r *run) error {
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
	e.mu.Lock()
	delete(e.runs, r.name)
	e.mu.Unlock()
	r.closeTraining()
	r.update(func() { r.status.State = cancelled })
	if err := os.Remove(r.statusPath()); err != nil && !missing(err) {
		return err
	}
	return removeTree(r.folder)
}
