package engine

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/data"
)

// dataset is a stored data set that has been opened.
type dataset struct {
	data *data.Dataset
	head os.FileInfo // of the file that every data set has, to notice another in its place
}

func (e *Engine) datasetPath(name string) string { return filepath.Join(e.folders.datasets, name) }

// datasetNamed opens a stored data set. The folder may have appeared, or been replaced, after the start.
func (e *Engine) datasetNamed(name string) (*data.Dataset, error) {
	var head os.FileInfo
	err := fs.ErrNotExist
	if api.CheckName("dataset", name) == nil { // else it may lead anywhere
		head, err = os.Stat(data.Head(e.datasetPath(name)))
	}
	if missing(err) {
		return nil, api.Errorf(api.DatasetNotFound, "No data set is called %q", name).WithHint("Stored: %s.", listedNames(e.datasetNames()))
	}
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	known := e.datasets[name]
	e.mu.RUnlock()
	if known.data != nil && os.SameFile(known.head, head) && known.head.ModTime().Equal(head.ModTime()) {
		return known.data, nil
	}
	d, err := data.Load(e.datasetPath(name))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.datasets[name] = dataset{d, head}
	return d, nil
}

func (e *Engine) datasetNames() []string { return storedNames(e.folders.datasets, "") }

func (e *Engine) datasetInfos() []api.DatasetInfo {
	infos := []api.DatasetInfo{}
	for _, name := range e.datasetNames() {
		d, err := e.datasetNamed(name)
		if err != nil {
			e.log.Warn("data set cannot be read", "name", name, "error", err)
			continue
		}
		infos = append(infos, describeDataset(name, d))
	}
	return infos
}

func describeDataset(name string, d *data.Dataset) api.DatasetInfo {
	return api.DatasetInfo{
		Name: name, Rows: d.Len(), Shape: d.Shape(), Layout: string(d.Layout()), DType: imageType(d).String(),
		Classes: d.Classes(), Hash: d.Hash(),
	}
}

// removeDataset deletes a data set. A run that reads it keeps what it has opened.
func (e *Engine) removeDataset(name string) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	if api.CheckName("dataset", name) != nil || !exists(e.datasetPath(name)) {
		return api.Errorf(api.DatasetNotFound, "No data set is called %q", name)
	}
	e.mu.Lock()
	delete(e.datasets, name)
	e.mu.Unlock()
	return removeTree(e.datasetPath(name))
}

// imageType is the type a data set was uploaded in.
func imageType(d *data.Dataset) api.Type {
	if d.IsFloat() {
		return api.Float32
	}
	return api.Uint8
}

// prepareDataset reads a data set back.
func (e *Engine) prepareDataset(_ context.Context, req api.Dataset) (*api.Job, error) {
	d, err := e.datasetNamed(req.Dataset)
	if err != nil {
		return nil, err
	}
	from := min(req.Offset, d.Len())
	to := from + min(req.Limit, d.Len()-from)
	schema := datasetSchema(d)
	schema.Metadata = metadata("Dataset", req, "dataset", req.Dataset)
	bytes, err := e.price(schema, int64(to-from))
	if err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: int64(to - from), Bytes: bytes, Run: func(ctx context.Context, emit func(api.Event) error) error {
		most := rowsPerBatch(schema, api.DefaultBatchBytes)
		for i := from; i < to; i += most {
			if err := ctx.Err(); err != nil {
				return err
			}
			end := min(i+most, to)
			if err := emit(api.Event{Batch: datasetRows(d, i, end), Meta: api.Done(int64(end-from), int64(to-from))}); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func datasetSchema(d *data.Dataset) api.Schema {
	return api.Schema{Columns: []api.Column{
		imageColumn("image", imageType(d), d.Layout(), d.Height(), d.Width(), d.Channels()),
		{Name: "label", Type: api.Int32},
		{Name: "index", Type: api.Int64},
	}}
}

// datasetRows makes the columns of images from … to−1.
func datasetRows(d *data.Dataset, from, to int) *api.Batch {
	label, index := make([]int32, to-from), make([]int64, to-from)
	for i := range label {
		label[i], index[i] = d.Label(from+i), int64(from+i)
	}
	var images any = d.Uint8(from, to)
	if imageType(d) == api.Float32 {
		images = d.Float32(from, to)
	}
	return &api.Batch{Rows: to - from, Cols: []any{images, label, index}}
}
