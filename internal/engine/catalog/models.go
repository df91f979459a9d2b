package catalog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Model returns a model that is served.
func (c *Catalog) Model(name string) (*Model, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if m := c.models.items[name]; m != nil {
		return m, nil
	}
	if err := c.models.damaged[name]; err != nil {
		return nil, err
	}
	e := api.NotFound(api.ModelNotFound, "model", name, c.models.names())
	return nil, e.WithHint("%s LoadModel serves a folder that has appeared meanwhile.", e.Hint)
}

// DescribeModel describes a model with its configuration.
func (c *Catalog) DescribeModel(_ context.Context, req api.ModelName) (api.ModelInfo, error) {
	m, err := c.Model(req.Model)
	if err != nil {
		return api.ModelInfo{}, err
	}
	info := m.Describe()
	info.Config = m.Net
	return info, nil
}

// Models returns the models that are served, sorted by name.
func (c *Catalog) Models() []*Model {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var models []*Model
	for _, name := range c.models.names() {
		models = append(models, c.models.items[name])
	}
	return models
}

// ModelInfos describes the models, including those that cannot be served.
func (c *Catalog) ModelInfos() []api.ModelInfo {
	return infos(&c.models, func(_ string, m *Model) api.ModelInfo { return m.Describe() },
		func(name string, files api.Integrity) api.ModelInfo {
			return api.ModelInfo{Name: name, Integrity: files}
		})
}

// scanModels serves every model folder that can be read.
func (c *Catalog) scanModels(log *slog.Logger) {
	for _, name := range StoredNames(c.folders.Models, "") {
		err := c.nameFree(name)
		var m *Model
		if err == nil {
			m, err = c.described(name, c.cfg.Precision)
		}
		if err == nil {
			c.install(m)
		} else {
			c.models.recordRead(log, name, nil, err)
		}
	}
}

// LoadModel serves the folder of a name, or renames a model. To load a model again changes its precision alone.
func (c *Catalog) LoadModel(ctx context.Context, req api.LoadModel) (api.ModelInfo, error) {
	if err := c.loadModel(req); err != nil {
		return api.ModelInfo{}, err
	}
	return c.DescribeModel(ctx, api.ModelName{Model: req.Name})
}

func (c *Catalog) loadModel(req api.LoadModel) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	if req.Model != "" {
		return c.renameModel(req.Model, req.Name)
	}
	if err := c.nameFree(req.Name); err != nil {
		return err
	}
	precision := cmp.Or(kernels.Precision(req.Precision), c.cfg.Precision)
	if old, err := c.Model(req.Name); err == nil {
		if req.Precision == "" || precision == old.precision {
			return nil
		}
	}
	m, err := c.described(req.Name, precision)
	if err == nil { // the description has looked at the shapes of the values alone
		_, err = checkpoint.ReadWeights(m.folder, m.Net, func(int, []float32) {})
	}
	if _, ok := errors.AsType[*api.Error](err); ok {
		return err
	}
	if err != nil {
		_, damaged := errors.AsType[*atomicdir.DamageError](err)
		if failed := notRead("model folder", req.Name, err); damaged || failed.Code == api.Storage {
			return failed
		}
		return api.Errorf(api.BadModel, "The folder %q holds no model that can be served: %w", req.Name, withoutPath(err))
	}
	c.install(m)
	return nil
}

// described returns the model that a folder describes, to be computed at a precision.
func (c *Catalog) described(name string, precision kernels.Precision) (*Model, error) {
	folder := c.modelFolder(name)
	switch err := atomicdir.Inside(c.folders.Models, folder); {
	case errors.Is(err, atomicdir.ErrOutside):
		return nil, api.Errorf(api.BadModel, "The model folder %q leads outside the models folder", name).
			WithHint("Symbolic links must stay in the models folder.")
	case errors.Is(err, fs.ErrNotExist):
		return nil, api.Errorf(api.ModelNotFound, "There is no model folder %q", name)
	case err != nil:
		return nil, err
	}
	description, err := checkpoint.DescribeModel(folder)
	if err != nil {
		return nil, err
	}
	return c.newModel(name, precision, description), nil
}

func (c *Catalog) newModel(name string, precision kernels.Precision, description *checkpoint.Model) *Model {
	return &Model{
		Name: name, Hash: description.Hash, Net: description.Net, Shape: description.Net.Shape(),
		Schedule: description.Schedule, Basis: description.Basis, Unseen: description.Unseen,
		catalog: c, folder: c.modelFolder(name), precision: precision, holders: 1,
		kernels: map[*basis.Basis]*kernels.Model{},
	}
}

// installWritten serves a model folder that was just written, at the precision of the model that had its name, or at
// the given one if there is none.
func (c *Catalog) installWritten(name string, description *checkpoint.Model, precision kernels.Precision) *Model {
	if old, err := c.Model(name); err == nil {
		precision = old.precision
	}
	m := c.newModel(name, precision, description)
	c.install(m)
	return m
}

func (c *Catalog) modelFolder(name string) string { return filepath.Join(c.folders.Models, name) }

// SaveModel writes a model folder and serves it.
func (c *Catalog) SaveModel(name string, replace bool, model *checkpoint.Model) (*Model, error) {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeModel(name, replace); err != nil {
		return nil, err
	}
	if err := checkpoint.SaveModel(c.modelFolder(name), model, replace); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, NameTaken("model folder", name)
		}
		return nil, err
	}
	description, err := checkpoint.DescribeModel(c.modelFolder(name))
	if err != nil {
		return nil, err
	}
	return c.installWritten(name, description, c.cfg.Precision), nil
}

// CreateModel begins to write a model folder whose files come in pieces. PlaceModel gives it its name.
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
	description, err := w.Commit(replace)
	if err != nil {
		return err
	}
	c.installWritten(name, description, c.cfg.Precision)
	return nil
}

// FreeModel checks that a model may be saved under a name.
func (c *Catalog) FreeModel(name string, replace bool) error {
	if err := c.nameFree(name); err != nil {
		return err
	}
	_, err := c.Model(name)
	return free("model", name, err == nil || exists(c.modelFolder(name)), replace)
}

// renameModel renames a model and its folder, and replaces the model of that name. The caller holds changes.
func (c *Catalog) renameModel(oldName, name string) error {
	m, err := c.Model(oldName)
	if err != nil {
		return err
	}
	if err := c.FreeModel(name, true); err != nil || name == oldName {
		return err
	}
	if err := atomicdir.Swap(c.modelFolder(name), m.folder); err != nil {
		return err
	}
	description := &checkpoint.Model{Net: m.Net, Hash: m.Hash, Schedule: m.Schedule, Basis: m.Basis}
	c.installWritten(name, description, m.precision)
	if err := c.dropModel(oldName); err != nil {
		return err
	}
	return atomicdir.Remove(m.folder) // of the model that was called so
}

// nameFree checks that no schedule has a model's name, and that it is not reserved.
func (c *Catalog) nameFree(name string) error {
	if err := CheckReserved(name); err != nil {
		return err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.schedules.inUse(name) {
		return api.Errorf(api.NameTaken, "A schedule is called %q, and a model's name means its own schedule", name).
			WithHint("Choose another name.")
	}
	return nil
}

// install serves m, and releases the model that had its name. The caller holds changes.
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
func (c *Catalog) UnloadModel(_ context.Context, req api.ModelName) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	return c.dropModel(req.Model)
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

// DeleteModel stops serving a model and deletes its folder.
func (c *Catalog) DeleteModel(_ context.Context, req api.ModelName) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	m, err := c.Model(req.Model)
	if err != nil && api.ErrorOf(err).Code != api.Damaged {
		return err
	}
	if err := atomicdir.Remove(c.modelFolder(req.Model)); err != nil {
		return err
	}
	c.models.drop(req.Model)
	if m != nil {
		m.Release()
	}
	return nil
}
