package engine

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/data"
)

// dataset is a stored data set. It is read when it is first needed and stays in memory.
type dataset struct {
	name string
	path string

	once sync.Once
	data *data.Dataset
	err  error
}

// open gives the images.
func (d *dataset) open() (*data.Dataset, error) {
	d.once.Do(func() {
		if d.data == nil {
			d.data, d.err = data.Load(d.path)
		}
	})
	return d.data, d.err
}

func (e *Engine) datasetPath(name string) string { return filepath.Join(e.folders.datasets, name) }

// scanDatasets lists the stored data sets without reading them.
func (e *Engine) scanDatasets() {
	for _, name := range storedNames(e.folders.datasets, "") {
		e.datasets[name] = &dataset{name: name, path: e.datasetPath(name)}
	}
}

// datasetNamed gives the images of a stored data set.
func (e *Engine) datasetNamed(name string) (*data.Dataset, error) {
	e.mu.RLock()
	d, ok := e.datasets[name]
	hint := listed(e.datasets)
	e.mu.RUnlock()
	if !ok {
		return nil, api.Errorf(api.DatasetNotFound, "No data set is called %q", name).WithHint("Stored: %s.", hint)
	}
	return d.open()
}

func (e *Engine) listDatasets() []api.DatasetInfo {
	e.mu.RLock()
	names := slices.Sorted(maps.Keys(e.datasets))
	e.mu.RUnlock()
	infos := []api.DatasetInfo{}
	for _, name := range names {
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
	return api.DatasetInfo{Name: name, Rows: d.Len(), Shape: d.Shape(), Layout: string(d.Layout()), DType: imageType(d).String(), Classes: d.Classes()}
}

// deleteDataset deletes a data set. A run that reads it keeps what it holds in memory.
func (e *Engine) deleteDataset(name string) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	e.mu.Lock()
	_, ok := e.datasets[name]
	delete(e.datasets, name)
	e.mu.Unlock()
	if !ok {
		return api.Errorf(api.DatasetNotFound, "No data set is called %q", name)
	}
	return removeTree(e.datasetPath(name))
}

// imageType is the type a data set was uploaded in.
func imageType(d *data.Dataset) api.Type {
	if d.Uint8(0, 0) == nil {
		return api.Float32
	}
	return api.Uint8
}

// prepareDataset reads a data set back.
func (e *Engine) prepareDataset(_ context.Context, body json.RawMessage) (*Job, error) {
	var req api.Dataset
	if err := api.Decode(body, &req); err != nil {
		return nil, err
	}
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
	return &Job{Schema: schema, Rows: int64(to - from), Bytes: bytes, Run: func(ctx context.Context, emit func(api.Event) error) error {
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
		imageColumn("image", imageType(d), layout(d.Layout()), d.Height(), d.Width(), d.Channels()),
		{Name: "label", Type: api.Int32},
		{Name: "index", Type: api.Int64},
	}}
}

// datasetRows makes the columns of images from … to−1. The images are the data set's own memory, which never changes.
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
