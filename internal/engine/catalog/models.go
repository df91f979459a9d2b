package catalog

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Model finds a model that is served.
func (c *Catalog) Model(name string) (*Model, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	m, ok := c.models[name]
	if err := c.broken.find(modelKind, name); err != nil && !ok {
		return nil, err
	}
	if !ok {
		e := api.NotFound(api.ModelNotFound, "model", name, slices.Sorted(maps.Keys(c.models)))
		return nil, e.WithHint("%s LoadModel serves a folder that has appeared meanwhile.", e.Hint)
	}
	return m, nil
}

// ScheduleFor finds the schedule that a request means for a model, the model's own where it names none. EDM's is that
// over the model's noise levels.
func (c *Catalog) ScheduleFor(ref api.ScheduleRef, m *Model) (s Schedule, err error) {
	switch {
	case ref.Name == "edm" && ref.T != api.DefaultT:
		s, err = m.edm(ref.T)
	case ref.Name == "edm":
		s, err = m.edm(0)
	case ref.Given():
		s, err = c.ScheduleNamed(ref)
	default:
		s, err = m.OwnSchedule()
	}
	if err == nil {
		err = m.CheckRange(s)
	}
	return s, err
}

// ScheduleOn is ScheduleFor with the programs of the model's network for that schedule's basis.
func (c *Catalog) ScheduleOn(ref api.ScheduleRef, m *Model) (s Schedule, on *kernels.Model, err error) {
	if s, err = c.ScheduleFor(ref, m); err != nil {
		return s, nil, err
	}
	h, w, _ := m.ImageSize()
	family := s.Family()
	var b *basis.Basis
	if b, err = c.BasisFor(family, h, w, s.Basis, m); err != nil {
		return s, nil, err
	}
	if b.J() != s.J() {
		return s, nil, api.Errorf(api.BadRequest, "The schedule %q has %d subspaces, its basis %q splits images into %d",
			s.Name, s.J(), family.Basis, b.J())
	}
	on, err = m.On(b)
	return s, on, err
}

// scanModels describes every model folder. A broken one is logged and left out.
func (c *Catalog) scanModels() {
	for _, name := range StoredNames(c.folders.Models, "") {
		folder, path, err := c.resolve(name)
		var m *Model
		if err == nil {
			err = c.nameFree(name, path)
		}
		if err == nil {
			m, err = c.describe(name, folder, path, c.cfg.Precision)
		}
		if err != nil {
			c.leaveOut(modelKind, name, err)
			continue
		}
		c.installModel(m)
	}
}

// resolve finds a model folder by its path below the models folder.
func (c *Catalog) resolve(asked string) (folder, path string, err error) {
	folder, err = inside(c.folders.Models, asked)
	switch {
	case errors.Is(err, errOutside):
		return "", "", api.Errorf(api.BadModel, "The path %q leads outside the models folder", asked).
			WithHint("Paths are relative to the models folder, without symbolic links out of it.")
	case Missing(err):
		return "", "", api.Errorf(api.ModelNotFound, "There is no model folder %q", asked)
	case err != nil:
		return "", "", api.Errorf(api.BadModel, "The path %q is not a model folder: %w", asked, withoutPath(err))
	}
	path, err = c.relative(folder)
	return folder, path, err
}

// LoadModel serves the folder req.Path under req.Name. Doing so again changes nothing but the precision.
func (c *Catalog) LoadModel(req api.LoadModel) error {
	folder, path, err := c.resolve(req.Path)
	if err != nil {
		return err
	}
	c.changes.Lock()
	defer c.changes.Unlock()
	if req.Replace && path != req.Name {
		return c.renameModel(path, req.Name)
	}
	if err := c.nameFree(req.Name, path); err != nil {
		return err
	}
	at, loaded := c.precisionOf(req.Name, path)
	if wanted := kernels.Precision(req.Precision); wanted != "" && wanted != at {
		at, loaded = wanted, false
	}
	if loaded {
		return nil
	}
	m, err := c.describe(req.Name, folder, path, at)
	if err == nil {
		err = m.check()
	}
	var damage *atomicdir.DamageError
	if errors.As(err, &damage) {
		return Damaged("model folder", req.Path, err)
	}
	if err != nil {
		return api.Errorf(api.BadModel, "The folder %q holds no model that can be served: %w", req.Path, withoutPath(err))
	}
	c.installModel(m)
	return nil
}

// describe reads what a model folder says of its model, to be computed at a precision.
func (c *Catalog) describe(name, folder, path string, at kernels.Precision) (*Model, error) {
	stored, err := checkpoint.DescribeModel(folder)
	if err != nil {
		return nil, err
	}
	if stored.Hash == "" { // there is no manifest
		if stored.Hash, err = c.hashes.of(folder); err != nil {
			return nil, err
		}
	}
	return c.newModel(name, folder, path, at, stored), nil
}

func (c *Catalog) newModel(name, folder, path string, at kernels.Precision, stored *checkpoint.Model) *Model {
	return &Model{
		Name: name, Path: path, Hash: stored.Hash, Net: stored.Net, Shape: stored.Net.Shape(), Schedule: stored.Schedule,
		Basis:   stored.Basis,
		catalog: c, folder: folder, asked: at, holders: 1, kernels: map[*basis.Basis]*kernels.Model{},
	}
}

// SaveModel writes a model folder and serves it.
func (c *Catalog) SaveModel(name string, replace bool, stored *checkpoint.Model) (*Model, error) {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeModel(name, replace); err != nil {
		return nil, err
	}
	folder := filepath.Join(c.folders.Models, name)
	if err := checkpoint.SaveModel(folder, stored, replace); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, NameTaken("model folder", name)
		}
		return nil, err
	}
	at, _ := c.precisionOf(name, name)
	m, err := c.describe(name, folder, name, at)
	if err != nil {
		return nil, err
	}
	m.note(ReadWhole(folder))
	c.installModel(m)
	return m, nil
}

// CreateModel begins to write a model folder of files that come piece by piece, which gets its place by PlaceModel.
func (c *Catalog) CreateModel(name string, config []byte, weightsBytes int64) (*checkpoint.ModelWriter, error) {
	return checkpoint.CreateModel(filepath.Join(c.folders.Models, name), config, weightsBytes)
}

// PlaceModel gives a new model folder its name and serves it.
func (c *Catalog) PlaceModel(name string, w *checkpoint.ModelWriter, replace bool) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeModel(name, replace); err != nil {
		w.Abort()
		return err
	}
	stored, err := w.Commit(replace)
	if err != nil {
		return err
	}
	at, _ := c.precisionOf(name, name)
	folder := filepath.Join(c.folders.Models, name)
	m := c.newModel(name, folder, name, at, stored)
	m.note(ReadWhole(folder))
	c.installModel(m)
	return nil
}

// FreeModel checks that a model may be saved under a name.
func (c *Catalog) FreeModel(name string, replace bool) error {
	if err := c.nameFree(name, name); err != nil {
		return err
	}
	if !replace && (c.isLoaded(name, name) || exists(filepath.Join(c.folders.Models, name))) {
		return NameTaken("model", name)
	}
	return nil
}

// renameModel gives a model and its folder the name of another, whose place it takes. The caller holds changes.
func (c *Catalog) renameModel(from, name string) error {
	m, err := c.Model(from)
	if err != nil {
		return err
	}
	if m.Path != from || !c.ownFolder(m) {
		return api.Errorf(api.BadRequest, "path must be a model that is served under its own name alone, got %q", from)
	}
	if err := c.FreeModel(name, true); err != nil {
		return err
	}
	at, served := c.precisionOf(name, name)
	if !served {
		at = m.asked
	}
	folder := filepath.Join(c.folders.Models, name)
	if err := atomicdir.Swap(folder, m.folder); err != nil {
		return err
	}
	renamed := c.newModel(name, folder, name, at,
		&checkpoint.Model{Net: m.Net, Hash: m.Hash, Schedule: m.Schedule, Basis: m.Basis})
	renamed.note(ReadWhole(folder))
	c.installModel(renamed)
	if _, err := c.dropModel(from); err != nil {
		return err
	}
	return atomicdir.Remove(m.folder) // of the model that was called so
}

// relative returns a folder's path below the models folder, free of symbolic links.
func (c *Catalog) relative(folder string) (string, error) {
	root, err := filepath.EvalSymlinks(c.folders.Models)
	if err != nil {
		return "", err
	}
	path, err := filepath.Rel(root, folder)
	return filepath.ToSlash(path), err
}

// isLoaded reports whether name means the model of that folder already.
func (c *Catalog) isLoaded(name, path string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	m := c.models[name]
	return m != nil && m.Path == path
}

// precisionOf returns that of the model of a folder if name means it already, else that of models that name none.
func (c *Catalog) precisionOf(name, path string) (at kernels.Precision, loaded bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if m := c.models[name]; m != nil && m.Path == path {
		return m.asked, true
	}
	return c.cfg.Precision, false
}

// nameFree checks that a folder may be served under name.
func (c *Catalog) nameFree(name, path string) error {
	if err := CheckReserved(name); err != nil {
		return err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.broken.find(modelKind, name) != nil && path != name {
		return api.Errorf(api.NameTaken, "The model %q is the folder of that name, which is damaged", name).
			WithHint("Choose another name, or DeleteModel first.")
	}
	if m := c.models[name]; m != nil && m.Path != path {
		return api.Errorf(api.NameTaken, "The model %q is the folder %q", name, m.Path).
			WithHint("Choose another name, or UnloadModel first.")
	}
	if c.schedules.taken(name) {
		return api.Errorf(api.NameTaken, "A schedule is called %q, and a model's name means its own schedule", name).
			WithHint("Choose another name.")
	}
	return nil
}

// installModel puts m into the catalogue in place of what had its name. The caller holds changes.
func (c *Catalog) installModel(m *Model) {
	c.mu.Lock()
	old := c.models[m.Name]
	c.versions[m.Name]++
	m.Version = c.versions[m.Name]
	c.models[m.Name] = m
	c.broken.mended(modelKind, m.Name)
	c.mu.Unlock()
	if old != nil {
		old.Release()
	}
}

// UnloadModel stops serving a model; requests under way keep it.
func (c *Catalog) UnloadModel(name string) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	_, err := c.dropModel(name)
	return err
}

func (c *Catalog) dropModel(name string) (*Model, error) {
	m, err := c.Model(name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	delete(c.models, name)
	c.mu.Unlock()
	m.Release()
	return m, nil
}

// DeleteModel stops serving a model and deletes its folder, which is no other model's.
func (c *Catalog) DeleteModel(name string) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	path := name // of a folder that cannot be served
	link, _ := os.Readlink(filepath.Join(c.folders.Models, name))
	switch m, err := c.Model(name); {
	case err == nil && link != "": // the link goes, and not what it leads to
	case err == nil:
		if path = m.Path; !c.ownFolder(m) {
			return api.Errorf(api.BadRequest, "The folder %q of the model %q is another model's, too", path, name).
				WithHint("UnloadModel lets go of a name and leaves the folder.")
		}
	case api.ErrorOf(err).Code != api.Damaged:
		return err
	}
	if err := atomicdir.Remove(filepath.Join(c.folders.Models, filepath.FromSlash(path))); err != nil {
		return err
	}
	c.mu.Lock()
	c.broken.mended(modelKind, name)
	served := c.models[name] != nil
	c.mu.Unlock()
	if served {
		_, err := c.dropModel(name)
		return err
	}
	return nil
}

// ownFolder reports whether the folder of a model belongs to no other model, be it served now or after the next start.
func (c *Catalog) ownFolder(m *Model) bool {
	if scanned := !strings.Contains(m.Path, "/"); scanned && m.Path != m.Name {
		return false
	}
	for _, other := range c.Models() {
		if other.Name != m.Name && other.Path == m.Path {
			return false
		}
	}
	return true
}

// ModelInfos describes the models, those that cannot be served included.
func (c *Catalog) ModelInfos() []api.ModelInfo {
	infos := []api.ModelInfo{}
	for _, m := range c.Models() {
		infos = append(infos, m.Describe())
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.broken.each(modelKind, func(name string, of api.Integrity) {
		infos = append(infos, api.ModelInfo{Name: name, Path: name, Integrity: of})
	})
	return infos
}

// Models lists the models that are served, sorted by name.
func (c *Catalog) Models() []*Model {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var models []*Model
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		models = append(models, c.models[name])
	}
	return models
}
