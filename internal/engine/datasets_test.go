package engine

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// labelled is the schema of images with labels.
func labelled(image api.Column) api.Schema {
	return api.Schema{Columns: []api.Column{image, {Name: "label", Type: api.Int32}}}
}

// putImages uploads n random images of 8×8 with labels 0, 1, 2, 0, …
func putImages(t *testing.T, e *Engine, name string, n int) []float32 {
	t.Helper()
	in := labelled(tables.ImageColumn("image", api.Float32, data.HWC, 8, 8, 1))
	x, labels := noise(n, 77), make([]int32, n)
	for i := range x {
		x[i] = float32(math.Tanh(float64(x[i])))
	}
	for i := range labels {
		labels[i] = int32(i % 3)
	}
	rows, err := put(e, `{"op":"PutDataset","name":"`+name+`"}`, in, api.Batch{Rows: n, Cols: []any{x, labels}})
	if err != nil || rows != int64(n) {
		t.Fatalf("%d rows, %v", rows, err)
	}
	return x
}

func TestDatasetUploadRejects(t *testing.T) {
	e := open(t)
	putImages(t, e, "noise", 3)
	in := labelled(tables.ImageColumn("image", api.Float32, data.HWC, 1, 2, 1))
	image, label := in.Columns[0], in.Columns[1]
	_, err := put(e, `{"op":"PutDataset","name":"bad"}`, in, api.Batch{Cols: []any{[]float32{}, []int32{}}})
	wantCode(t, "no rows", err, api.BadTensor)
	_, err = put(e, `{"op":"PutDataset","name":"bad"}`, in, api.Batch{Rows: 1, Cols: []any{[]float32{2, 0}, []int32{0}}})
	wantCode(t, "above one", err, api.BadTensor)
	for name, columns := range map[string][]api.Column{
		"no image": {label},
		"float64":  {tables.ImageColumn("image", api.Float64, data.HWC, 1, 2, 1)},
		"scalar":   {{Name: "image", Type: api.Float32}},
		"label":    {image, {Name: "label", Type: api.Float64}},
		"more":     {image, {Name: "weight", Type: api.Float32}},
	} {
		_, err := openUpload(t.Context(), e, `{"op":"PutDataset","name":"bad"}`, api.Schema{Columns: columns})
		wantCode(t, name, err, api.BadTensor)
	}
	_, err = openUpload(t.Context(), e, `{"op":"PutDataset","name":"noise"}`, in)
	wantCode(t, "taken", err, api.NameTaken)
	_, err = openUpload(t.Context(), e, `{"op":"PutDataset","name":"Bad Name"}`, in)
	wantCode(t, "name", err, api.BadRequest)
	if _, err := e.catalog.Dataset("bad"); err == nil {
		t.Error("a refused upload left a data set")
	}
}

// TestDatasetsAppear: a folder that another process puts in its place is served at once, and
// so is one that replaces it; what leads out of the datasets is no name.
func TestDatasetsAppear(t *testing.T) {
	e := open(t)
	store := func(dir string, v uint8, replace bool) {
		t.Helper()
		w, err := data.Create(dir, data.Form{Height: 8, Width: 8, Channels: 1}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Uint8(slices.Repeat([]uint8{v}, 128), nil), w.Commit(replace)); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(v uint8) {
		t.Helper()
		if x := column[uint8](get(t, e, "Dataset", `{"dataset":"late"}`), "image"); len(x) != 128 || x[0] != v {
			t.Errorf("%d values of %d, want 128 of %d", len(x), x[0], v)
		}
	}
	if infos := e.catalog.DatasetInfos(); len(infos) != 0 {
		t.Fatalf("there are %v", infos)
	}
	store(filepath.Join(e.catalog.Folders().Datasets, "late"), 1, false)
	listed := e.catalog.DatasetInfos()
	if len(listed) != 1 || listed[0].Name != "late" || listed[0].Rows != 2 || len(listed[0].Hash) != 64 {
		t.Errorf("listed: %v", listed)
	}
	shows(1)
	old, err := e.catalog.Dataset("late")
	if err != nil {
		t.Fatal(err)
	}
	store(filepath.Join(e.catalog.Folders().Datasets, "late"), 2, true)
	shows(2)
	if now := e.catalog.DatasetInfos(); now[0].Hash == listed[0].Hash {
		t.Errorf("other images have the same hash: %v", now)
	}
	if rows, err := old.Uint8(0, 1); err != nil || rows[0] != 1 {
		t.Error("a data set that is in use changes under its reader")
	}
	store(filepath.Join(e.catalog.Folders().Runs, "elsewhere"), 3, false)
	for _, name := range []string{"../runs/elsewhere", "..", "", "absent"} {
		if _, err := e.catalog.Dataset(name); api.ErrorOf(err).Code != api.DatasetNotFound {
			t.Errorf("%q: %v", name, err)
		}
		err := e.catalog.DeleteDataset(t.Context(), api.DatasetName{Dataset: name})
		if api.ErrorOf(err).Code != api.DatasetNotFound {
			t.Errorf("delete %q: %v", name, err)
		}
	}
}

// TestDeletedWhileListed: a data set that is deleted while it is listed is not called damaged.
func TestDeletedWhileListed(t *testing.T) {
	e := open(t)
	var all sync.WaitGroup
	defer all.Wait()
	over := make(chan struct{})
	all.Go(func() {
		defer close(over)
		for range 100 {
			w, err := e.catalog.CreateDataset("short", data.Form{Height: 1, Width: 1, Channels: 1}, 1)
			if err == nil {
				err = errors.Join(w.Uint8([]uint8{1}, nil), e.catalog.PlaceDataset("short", w, false))
			}
			if err == nil {
				err = e.catalog.DeleteDataset(t.Context(), api.DatasetName{Dataset: "short"})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for {
		select {
		case <-over:
			return
		default:
		}
		for _, info := range e.catalog.DatasetInfos() {
			if info.Integrity.State != api.Intact {
				t.Fatalf("listed as %+v", info)
			}
		}
	}
}
