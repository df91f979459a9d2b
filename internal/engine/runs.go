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
		if err := removeLeftovers(e.runs[name].folder); err != nil {
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
			return cfg, api.Errorf(api.BadRequest, "Field %q must be positive, not %s", name, value).WithHint("Leave it out for its default.")
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

func (e *Engine) listRuns() []api.RunInfo {
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
func (e *Engine) getRun(name string) (any, error) {
	r, err := e.runNamed(name)
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
func (e *Engine) createRun(ctx context.Context, req api.CreateRun, _ func(api.Meta)) (any, error) {
	cfg, err := readConfig(req.Config)
	if err != nil {
		return nil, err
	}
	e.changes.Lock()
	defer e.changes.Unlock()
	old, _ := e.runNamed(req.Name)
	if old != nil && !req.Replace {
		return nil, nameTaken("run", req.Name)
	}
	training, err := e.newTraining(cfg)
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
	r := e.newRun(req.Name, status{State: created, Created: time.Now().UTC(), Config: text}, full)
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

// storeNew writes the folder of a new run.
func (r *run) storeNew(ctx context.Context) error {
	if err := os.Mkdir(r.folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.store(ctx)
}

// newTraining finds what a configuration names and makes the training.
func (e *Engine) newTraining(cfg train.Config) (*train.Run, error) {
	if err := firstMissing(cfg); err != nil {
		return nil, err
	}
	src := train.Sources{Device: e.dev}
	var err error
	if src.Dataset, err = e.datasetNamed(cfg.Dataset); err != nil {
		return nil, err
	}
	if cfg.Model != "" {
		if src.Model, err = e.exportModel(cfg.Model); err != nil {
			return nil, err
		}
	}
	var s namedSchedule
	if cfg.Schedule != "" {
		ref := api.ScheduleRef{Name: cfg.Schedule, T: cfg.T}
		if ref.T == 0 {
			ref.T = api.DefaultT
		}
		if s, err = e.scheduleNamed(ref); err != nil {
			return nil, err
		}
		src.Schedule = s.Schedule
	}
	if src.Basis, err = e.familyBasis(cfg.Family, src, s); err != nil {
		return nil, err
	}
	return train.New(cfg, src)
}

// firstMissing names the first field that has no default and is not there.
func firstMissing(cfg train.Config) error {
	for _, f := range []struct{ name, value string }{{"stage", cfg.Stage}, {"dataset", cfg.Dataset}} {
		if f.value == "" {
			return api.Errorf(api.BadRequest, "Field %q is missing", f.name)
		}
	}
	return nil
}

// familyBasis finds the basis of a family by its name: none and dct need none, another may come with the model or the
// schedule that the run starts from.
func (e *Engine) familyBasis(family schedule.Family, src train.Sources, s namedSchedule) (*basis.Basis, error) {
	switch {
	case family.Basis == "" || family.Basis == "none" || family.Basis == "dct":
		return nil, nil
	case s.basis != nil && s.Family().Basis == family.Basis:
		return s.basis, nil
	case src.Model != nil && src.Model.Basis != nil && src.Model.Schedule != nil && src.Model.Schedule.Family().Basis == family.Basis:
		return src.Model.Basis, nil
	}
	return e.basisNamed(family.Basis)
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
func (e *Engine) deleteRun(ctx context.Context, req api.RunName, _ func(api.Meta)) (any, error) {
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
