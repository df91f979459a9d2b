package catalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data"
)

// dataset is a stored data set that has been opened.
type dataset struct {
	data *data.Dataset
	head os.FileInfo // of the file that every data set has, to notice another in its place
}

func (c *Catalog) datasetPath(name string) string { return filepath.Join(c.folders.Datasets, name) }

// Dataset opens a stored data set. Its folder may have appeared, been replaced or been repaired since the start.
func (c *Catalog) Dataset(name string) (*data.Dataset, error) {
	d, err := c.openDataset(name, false)
	if err == nil {
		if _, damage := d.Checked(); damage != nil {
			return c.openDataset(name, true)
		}
	}
	return d, err
}

// openDataset opens a stored data set, unless it is open already and not to be opened again. What cannot be read is
// read once more while nothing changes: it may have been deleted meanwhile.
func (c *Catalog) openDataset(name string, again bool) (*data.Dataset, error) {
	if api.CheckName("dataset", name) == nil { // another name may lead out of the folder
		if d, err := c.readDataset(name, again); err == nil {
			return d, nil
		}
		c.changes.Lock()
		defer c.changes.Unlock()
		if exists(c.datasetPath(name)) {
			return c.readDataset(name, again)
		}
	}
	return nil, api.NotFound(api.DatasetNotFound, "data set", name, c.datasetNames())
}

func (c *Catalog) readDataset(name string, again bool) (*data.Dataset, error) {
	head, err := os.Stat(data.Head(c.datasetPath(name)))
	if errors.Is(err, fs.ErrNotExist) {
		gone := &atomicdir.DamageError{File: filepath.Base(data.Head("")), Msg: "is missing"}
		return nil, Damaged("data set", name, gone)
	}
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	opened := c.datasets[name]
	c.mu.RUnlock()
	if !again && opened.data != nil && os.SameFile(opened.head, head) && opened.head.ModTime().Equal(head.ModTime()) {
		return opened.data, nil
	}
	d, err := data.Load(c.datasetPath(name))
	if err != nil {
		return nil, notRead("data set", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.datasets[name] = dataset{d, head}
	return d, nil
}

func (c *Catalog) datasetNames() []string { return StoredNames(c.folders.Datasets, "") }

// DatasetInfos describes the stored data sets.
func (c *Catalog) DatasetInfos() []api.DatasetInfo {
	infos := []api.DatasetInfo{}
	for _, name := range c.datasetNames() {
		d, err := c.openDataset(name, false)
		if err != nil {
			if api.ErrorOf(err).Code == api.DatasetNotFound {
				continue // it is deleted meanwhile
			}
			c.cfg.Logger.Warn("data set cannot be read", "name", name, "error", err)
			infos = append(infos, api.DatasetInfo{Name: name, Shape: []int{}, Integrity: damagedBy(api.ErrorOf(err))})
			continue
		}
		infos = append(infos, DescribeDataset(name, d))
	}
	return infos
}

// DescribeDataset describes a data set as lists do.
func DescribeDataset(name string, d *data.Dataset) api.DatasetInfo {
	info := api.DatasetInfo{
		Name: name, Rows: d.Len(), Shape: d.Shape(), Layout: string(d.Layout()), DType: ImageType(d).String(),
		Classes: d.Classes(), Hash: d.Hash(), Normalization: d.Normalization(),
		Integrity: api.Integrity{State: api.Intact},
	}
	if _, damage := d.Checked(); damage != nil {
		info.Integrity = damagedBy(Damaged("data set", name, damage))
	}
	return info
}

// DeleteDataset deletes a data set. A run that has opened it goes on reading it.
func (c *Catalog) DeleteDataset(_ context.Context, req api.DatasetName) error {
	name := req.Dataset
	c.changes.Lock()
	defer c.changes.Unlock()
	if api.CheckName("dataset", name) != nil || !exists(c.datasetPath(name)) {
		return api.NotFound(api.DatasetNotFound, "data set", name, c.datasetNames())
	}
	c.mu.Lock()
	delete(c.datasets, name)
	c.mu.Unlock()
	return atomicdir.Remove(c.datasetPath(name))
}

// ImageType is the type of a data set's values: uint8 or float32.
func ImageType(d *data.Dataset) api.Type {
	if d.IsFloat() {
		return api.Float32
	}
	return api.Uint8
}

// FreeDataset checks that a data set may be stored under name.
func (c *Catalog) FreeDataset(name string, replace bool) error {
	return free("dataset", name, exists(c.datasetPath(name)), replace)
}

// CreateDataset begins to write a data set of n images, 0 if that is not known. PlaceDataset gives it its name.
func (c *Catalog) CreateDataset(name string, form data.Form, n int) (*data.Writer, error) {
	return data.Create(c.datasetPath(name), form, n)
}

// PlaceDataset gives a new data set its name.
func (c *Catalog) PlaceDataset(name string, w *data.Writer, replace bool) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeDataset(name, replace); err != nil {
		w.Abort()
		return err
	}
	return w.Commit(replace)
}

// SeenBy returns a data set as the named model sees it, or as it is if no model is named.
func (c *Catalog) SeenBy(model, name string) (*data.Dataset, error) {
	if model == "" {
		return c.Dataset(name)
	}
	_, d, err := c.ModelAndImages(model, name)
	return d, err
}

// ModelAndImages returns a model, and a data set of images that it takes, seen through the model's normalization if it
// has one.
func (c *Catalog) ModelAndImages(model, name string) (*Model, *data.Dataset, error) {
	m, err := c.Model(model)
	if err != nil {
		return nil, nil, err
	}
	d, err := c.Dataset(name)
	if err != nil {
		return nil, nil, err
	}
	h, w, channels := m.ImageSize()
	if d.Height() != h || d.Width() != w || d.Channels() != channels {
		return nil, nil, api.Errorf(api.BadRequest,
			"The images of %q have %d×%d pixels in %d channels, those of model %q %d×%d in %d",
			name, d.Height(), d.Width(), d.Channels(), m.Name, h, w, channels)
	}
	if d.Classes() > m.Shape.Labels && m.Shape.Labels > 0 {
		return nil, nil, api.Errorf(api.BadRequest, "The data set %q has %d classes, the model %q %d", name,
			d.Classes(), m.Name, m.Shape.Labels)
	}
	normalized, err := d.WithNormalization(m.Shape.Normalization)
	if err != nil {
		return nil, nil, api.Errorf(api.BadRequest,
			"The data set %q must be float32, in the units of the model %q, got uint8", name, m.Name)
	}
	return m, normalized, nil
}
