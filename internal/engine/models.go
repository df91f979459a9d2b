package engine

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// modelNamed finds a loaded model.
func (e *Engine) modelNamed(name string) (*model, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	m, ok := e.models[name]
	if !ok {
		return nil, api.Errorf(api.ModelNotFound, "No model is called %q", name).
			WithHint("Loaded: %s. LoadModel serves a folder that has appeared meanwhile.", listed(e.models))
	}
	return m, nil
}

// scheduleOn finds the schedule that a request means, the model's own where it names none, and the programs of the
// model's network for that schedule's basis.
func (e *Engine) scheduleOn(ref api.ScheduleRef, m *model) (s namedSchedule, on *kernels.Model, err error) {
	if ref.Given() {
		s, err = e.scheduleNamed(ref)
	} else {
		s, err = m.ownSchedule()
	}
	if err != nil {
		return s, nil, err
	}
	h, w, _ := m.imageSize()
	family := s.Family()
	var b *basis.Basis
	if b, err = e.basisFor(family, h, w, s.basis, m); err != nil {
		return s, nil, err
	}
	if b.J() != s.J() {
		return s, nil, api.Errorf(api.BadRequest, "The schedule %q has %d subspaces, its basis %q splits images into %d", s.name, s.J(), family.Basis, b.J())
	}
	on, err = m.on(b)
	return s, on, err
}

// scanModels loads every model folder. A broken one is logged and left out.
func (e *Engine) scanModels() {
	for _, name := range storedNames(e.folders.models, "") {
		if err := e.serveFolder(api.LoadModel{Name: name, Path: name}); err != nil {
			e.log.Warn("model left out", "name", name, "error", err)
		}
	}
}

// serveFolder serves the folder req.Path under req.Name. Doing so again changes nothing but the precision.
func (e *Engine) serveFolder(req api.LoadModel) error {
	folder, err := inside(e.folders.models, req.Path)
	switch {
	case errors.Is(err, errOutside):
		return api.Errorf(api.BadModel, "The path %q leads outside the models folder", req.Path).
			WithHint("Paths are relative to the models folder, without symbolic links out of it.")
	case missing(err):
		return api.Errorf(api.ModelNotFound, "There is no model folder %q", req.Path)
	case err != nil:
		return api.Errorf(api.BadModel, "The path %q is not a model folder: %w", req.Path, notes(err))
	}
	path, err := e.relative(folder)
	if err != nil {
		return err
	}
	e.changes.Lock()
	defer e.changes.Unlock()
	if err := e.freeModel(req.Name, path); err != nil {
		return err
	}
	at, loaded := e.precisionOf(req.Name, path)
	if wanted := kernels.Precision(req.Precision); wanted != "" && wanted != at {
		at, loaded = wanted, false
	}
	if loaded {
		return nil
	}
	m, err := e.readModel(req.Name, folder, path, at)
	if err != nil {
		return api.Errorf(api.BadModel, "The folder %q holds no model that can be served: %w", req.Path, notes(err))
	}
	e.installModel(m)
	return nil
}

// relative gives a folder's path below the models folder, free of symbolic links.
func (e *Engine) relative(folder string) (string, error) {
	root, err := filepath.EvalSymlinks(e.folders.models)
	if err != nil {
		return "", err
	}
	path, err := filepath.Rel(root, folder)
	return filepath.ToSlash(path), err
}

// isLoaded tells whether name means the model of that folder already.
func (e *Engine) isLoaded(name, path string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	m := e.models[name]
	return m != nil && m.path == path
}

// precisionOf gives that of the model of a folder if name means it already, else that of models that name none.
func (e *Engine) precisionOf(name, path string) (at kernels.Precision, loaded bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if m := e.models[name]; m != nil && m.path == path {
		return m.asked, true
	}
	return e.cfg.Precision, false
}

// freeModel tells whether a folder may be served under name.
func (e *Engine) freeModel(name, path string) error {
	if err := checkReserved(name); err != nil {
		return err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if m := e.models[name]; m != nil && m.path != path {
		return api.Errorf(api.NameTaken, "The model %q is the folder %q", name, m.path).WithHint("Choose another name, or UnloadModel first.")
	}
	if _, taken := e.schedules[name]; taken {
		return api.Errorf(api.NameTaken, "A schedule is called %q, and a model's name means its own schedule", name).WithHint("Choose another name.")
	}
	return nil
}

// installModel puts m into the catalogue in place of what had its name. The caller holds changes.
func (e *Engine) installModel(m *model) {
	e.mu.Lock()
	old := e.models[m.name]
	e.versions[m.name]++
	m.version = e.versions[m.name]
	e.models[m.name] = m
	e.mu.Unlock()
	if old != nil {
		old.release()
	}
}

// unserve stops serving a model; requests under way keep it.
func (e *Engine) unserve(name string) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	_, err := e.dropModel(name)
	return err
}

func (e *Engine) dropModel(name string) (*model, error) {
	m, err := e.modelNamed(name)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	delete(e.models, name)
	e.mu.Unlock()
	m.release()
	return m, nil
}

// removeModel stops serving a model and deletes its folder.
func (e *Engine) removeModel(name string) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	m, err := e.dropModel(name)
	if err != nil {
		return err
	}
	return removeTree(filepath.Join(e.folders.models, filepath.FromSlash(m.path)))
}

func (e *Engine) modelInfos() []api.ModelInfo {
	e.mu.RLock()
	defer e.mu.RUnlock()
	infos := []api.ModelInfo{}
	for _, name := range slices.Sorted(maps.Keys(e.models)) {
		infos = append(infos, e.models[name].describe())
	}
	return infos
}

// describe says what lists say about a model.
func (m *model) describe() api.ModelInfo {
	info := api.ModelInfo{
		Name: m.name, Path: m.path, Version: m.version, Hash: m.hash,
		Type: m.shape.Type, Resolution: m.shape.Height, Channels: m.shape.Channels, LabelDim: m.shape.Labels,
		Classes: m.shape.Classes, Parameters: m.stored.Net.ParamCount(),
		Precision: string(m.precision),
	}
	if m.shape.Width != m.shape.Height {
		info.Width = m.shape.Width
	}
	if m.sched != nil {
		own := describeSchedule(m.name, "model", m.sched)
		info.Schedule = &own
	}
	return info
}

// notes strips the paths that file errors carry: clients need not know where the server keeps things.
func notes(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
