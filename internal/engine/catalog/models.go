package catalog

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
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
	if m := c.models.items[name]; m != nil {
		return m, nil
	}
	if err := c.models.damage(name); err != nil {
		return nil, err
	}
	e := api.NotFound(api.ModelNotFound, "model", name, c.models.names())
	return nil, e.WithHint("%s LoadModel serves a folder that has appeared meanwhile.", e.Hint)
}

// DescribeModel describes a model with its configuration.
func (c *Catalog) DescribeModel(name string) (api.ModelInfo, error) {
	m, err := c.Model(name)
	if err != nil {
		return api.ModelInfo{}, err
	}
	info := m.Describe()
	info.Config = m.Net
	return info, nil
}

// Models lists the models that are served, sorted by name.
func (c *Catalog) Models() []*Model {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var models []*Model
	for _, name := range c.models.names() {
		models = append(models, c.models.items[name])
	}
	return models
}

// ModelInfos describes the models, those that cannot be served included.
func (c *Catalog) ModelInfos() []api.ModelInfo {
	return infos(&c.models, func(_ string, m *Model) api.ModelInfo { return m.Describe() },
		func(name string, files api.Integrity) api.ModelInfo {
			return api.ModelInfo{Name: name, Path: name, Integrity: files}
		})
}

// scanModels describes every model folder. A broken one is logged and left out.
func (c *Catalog) scanModels(log *slog.Logger) {
	for _, name := range StoredNames(c.folders.Models, "") {
		folder, path, err := c.resolve(name)
		var m *Model
		if err == nil {
			err = c.nameFree(name, path)
		}
		if err == nil {
			m, err = c.described(name, folder, path, c.cfg.Precision)
		}
		if err == nil {
			c.install(m)
		} else {
			c.models.found(log, name, nil, err)
		}
	}
}

// resolve finds a model folder by its path below the models folder, and that path free of symbolic links.
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
	root, err := filepath.EvalSymlinks(c.folders.Models)
	if err != nil {
		return "", "", err
	}
	path, err = filepath.Rel(root, folder)
	return folder, filepath.ToSlash(path), err
}

// LoadModel serves the folder req.Path under req.Name. Doing so again changes nothing except the precision.
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
	precision, served := c.precisionOf(req.Name, path)
	if asked := kernels.Precision(req.Precision); asked != "" && asked != precision {
		precision, served = asked, false
	}
	if served {
		return nil
	}
	m, err := c.described(req.Name, folder, path, precision)
	if err == nil { // the description has looked at the shapes of the values alone
		_, err = checkpoint.ReadWeights(folder, m.Net, func(int, []float32) {})
	}
	if _, ok := errors.AsType[*atomicdir.DamageError](err); ok {
		return Damaged("model folder", req.Path, err)
	}
	if err != nil {
		return api.Errorf(api.BadModel, "The folder %q holds no model that can be served: %w", req.Path, withoutPath(err))
	}
	m.note(ReadWhole(folder))
	c.install(m)
	return nil
}

// described returns the model that a folder describes, to be computed at a precision.
func (c *Catalog) described(name, folder, path string, precision kernels.Precision) (*Model, error) {
	stored, err := checkpoint.DescribeModel(folder)
	if err != nil {
		return nil, err
	}
	if stored.Hash == "" { // there is no manifest
		if stored.Hash, err = checkpoint.HashWeights(folder); err != nil {
			return nil, err
		}
	}
	return c.newModel(name, folder, path, precision, stored), nil
}

func (c *Catalog) newModel(name, folder, path string, precision kernels.Precision, stored *checkpoint.Model) *Model {
	return &Model{
		Name: name, Path: path, Hash: stored.Hash, Net: stored.Net, Shape: stored.Net.Shape(), Schedule: stored.Schedule,
		Basis:   stored.Basis,
		catalog: c, folder: folder, precision: precision, holders: 1, kernels: map[*basis.Basis]*kernels.Model{},
	}
}

// installOwn serves a folder of the models folder that was just written.
func (c *Catalog) installOwn(name string, precision kernels.Precision, stored *checkpoint.Model) *Model {
	m := c.newModel(name, c.modelFolder(name), name, precision, stored)
	m.note(ReadWhole(m.folder))
	c.install(m)
	return m
}

func (c *Catalog) modelFolder(name string) string { return filepath.Join(c.folders.Models, name) }

// SaveModel writes a model folder and serves it.
func (c *Catalog) SaveModel(name string, replace bool, stored *checkpoint.Model) (*Model, error) {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeModel(name, replace); err != nil {
		return nil, err
	}
	if err := checkpoint.SaveModel(c.modelFolder(name), stored, replace); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, NameTaken("model folder", name)
		}
		return nil, err
	}
	written, err := checkpoint.DescribeModel(c.modelFolder(name))
	if err != nil {
		return nil, err
	}
	precision, _ := c.precisionOf(name, name)
	return c.installOwn(name, precision, written), nil
}

// CreateModel begins to write a model folder of files that come piece by piece, which gets its place by PlaceModel.
func (c *Catalog) CreateModel(name string, config []byte, weightsBytes int64) (*checkpoint.ModelWriter, error) {
	return checkpoint.CreateModel(c.modelFolder(name), config, weightsBytes)
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
	precision, _ := c.precisionOf(name, name)
	c.installOwn(name, precision, stored)
	return nil
}

// FreeModel checks that a model may be saved under a name.
func (c *Catalog) FreeModel(name string, replace bool) error {
	if err := c.nameFree(name, name); err != nil {
		return err
	}
	_, served := c.precisionOf(name, name)
	return free("model", name, served || exists(c.modelFolder(name)), replace)
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
	precision, served := c.precisionOf(name, name)
	if !served {
		precision = m.precision
	}
	if err := atomicdir.Swap(c.modelFolder(name), m.folder); err != nil {
		return err
	}
	c.installOwn(name, precision, &checkpoint.Model{Net: m.Net, Hash: m.Hash, Schedule: m.Schedule, Basis: m.Basis})
	if err := c.dropModel(from); err != nil {
		return err
	}
	return atomicdir.Remove(m.folder) // of the model that was called so
}

// precisionOf returns that of the model of a folder if name means it already, else that of models that name none.
func (c *Catalog) precisionOf(name, path string) (precision kernels.Precision, served bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if m := c.models.items[name]; m != nil && m.Path == path {
		return m.precision, true
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
	if c.models.broken[name] != nil && path != name {
		return api.Errorf(api.NameTaken, "The model %q is the folder of that name, which is damaged", name).
			WithHint("Choose another name, or DeleteModel first.")
	}
	if m := c.models.items[name]; m != nil && m.Path != path {
		return api.Errorf(api.NameTaken, "The model %q is the folder %q", name, m.Path).
			WithHint("Choose another name, or UnloadModel first.")
	}
	if c.schedules.taken(name) {
		return api.Errorf(api.NameTaken, "A schedule is called %q, and a model's name means its own schedule", name).
			WithHint("Choose another name.")
	}
	return nil
}

// install puts m into the catalogue in place of what had its name. The caller holds changes.
func (c *Catalog) install(m *Model) {
	c.mu.Lock()
	c.versions[m.Name]++
	m.Version = c.versions[m.Name]
	old := c.models.items[m.Name]
	c.mu.Unlock()
	c.models.set(m.Name, m)
	if old != nil {
		old.Release()
	}
}

// UnloadModel stops serving a model; requests under way keep it.
func (c *Catalog) UnloadModel(name string) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	return c.dropModel(name)
}

func (c *Catalog) dropModel(name string) error {
	m, err := c.Model(name)
	if err != nil {
		return err
	}
	c.models.drop(name)
	m.Release()
	return nil
}

// DeleteModel stops serving a model and deletes its folder, which is no other model's.
func (c *Catalog) DeleteModel(name string) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	path := name // of a folder that cannot be served
	link, _ := os.Readlink(c.modelFolder(name))
	m, err := c.Model(name)
	switch {
	case err == nil && link != "": // the link goes, and not what it leads to
	case err == nil:
		if path = m.Path; !c.ownFolder(m) {
			return api.Errorf(api.BadRequest, "The folder %q of the model %q is another model's, too", path, name).
				WithHint("UnloadModel lets go of a name and leaves the folder.")
		}
	case api.ErrorOf(err).Code != api.Damaged:
		return err
	}
	if err := atomicdir.Remove(c.modelFolder(filepath.FromSlash(path))); err != nil {
		return err
	}
	c.models.drop(name)
	if m != nil {
		m.Release()
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
