package engine

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/data"
)

// datasetUpload collects images and labels.
type datasetUpload struct {
	e      *Engine
	req    api.PutDataset
	in     api.Schema
	room   room
	images data.Images
	rows   int
}

// putDataset opens the upload of a data set.
func (e *Engine) putDataset(body json.RawMessage, in api.Schema) (Upload, error) {
	u := &datasetUpload{e: e, in: in, room: room{limit: e.cfg.MaxUploadBytes}}
	if err := api.Decode(body, &u.req); err != nil {
		return nil, err
	}
	image := api.Column{Name: "image", Type: api.Uint8, Kind: api.Tensor}
	if i := in.Index("image"); i >= 0 && in.Columns[i].Type == api.Float32 {
		image.Type = api.Float32
	}
	if err := wantColumns(in, []api.Column{image}, []api.Column{{Name: "label", Type: api.Int32}}); err != nil {
		return nil, err
	}
	l, h, w, c, err := imageLayout(in.Columns[in.Index("image")])
	if err != nil {
		return nil, err
	}
	u.images = data.Images{Height: h, Width: w, Channels: c, Layout: data.Layout(l)}
	return u, e.freeDataset(u.req.Name, u.req.Replace)
}

func (e *Engine) freeDataset(name string, replace bool) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if _, taken := e.datasets[name]; taken && !replace {
		return nameTaken("dataset", name)
	}
	return nil
}

// Write implements Upload. Bad values are refused as they arrive, not after gigabytes more.
func (u *datasetUpload) Write(b api.Batch) error {
	if err := u.room.take(u.in, b); err != nil {
		return err
	}
	switch v := b.Cols[u.in.Index("image")].(type) {
	case []uint8:
		u.images.Uint8 = append(u.images.Uint8, v...)
	case []float32:
		size := u.images.Height * u.images.Width * u.images.Channels
		for i := range b.Rows {
			if err := data.CheckRow(u.rows+i, v[i*size:(i+1)*size]); err != nil {
				return explain(err)
			}
		}
		u.images.Float32 = append(u.images.Float32, v...)
	}
	if u.in.Index("label") >= 0 {
		u.images.Labels = append(u.images.Labels, api.ColumnOf[int32](u.in, b, "label")...)
	}
	u.rows += b.Rows
	return nil
}

// Commit implements Upload.
func (u *datasetUpload) Commit() (int64, error) {
	if u.rows == 0 {
		return 0, api.Errorf(api.BadTensor, "The data set has no images")
	}
	d, err := data.New(u.images)
	if err != nil {
		return 0, explain(err)
	}
	return int64(u.rows), u.e.storeDataset(u.req.Name, d, u.req.Replace)
}

// storeDataset writes a new data set and lists it.
func (e *Engine) storeDataset(name string, d *data.Dataset, replace bool) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	if err := e.freeDataset(name, replace); err != nil {
		return err
	}
	if err := data.Save(e.datasetPath(name), d, replace); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.datasets[name] = &dataset{name: name, path: e.datasetPath(name), data: d}
	return nil
}

// Abort implements Upload.
func (u *datasetUpload) Abort() { u.images = data.Images{} }
