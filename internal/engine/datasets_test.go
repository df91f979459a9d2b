package engine

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data"
)

// putImages uploads n random images of 8×8 with labels 0, 1, 2, 0, …
func putImages(t *testing.T, e *Engine, name string, n int) []float32 {
	t.Helper()
	in := api.Schema{Columns: []api.Column{
		tables.ImageColumn("image", api.Float32, data.HWC, 8, 8, 1),
		{Name: "label", Type: api.Int32},
	}}
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

func TestDatasetComesBackAsItWent(t *testing.T) {
	e := open(t)
	x := putImages(t, e, "noise", 20)
	for _, e := range []*Engine{e, reopen(t, filepath.Dir(e.catalog.Folders().Models), Config{})} {
		r := get(t, e, "Dataset", `{"dataset":"noise"}`)
		if !slices.Equal(column[float32](r, "image"), x) || column[int32](r, "label")[4] != 1 ||
			column[int64](r, "index")[19] != 19 {
			t.Error("the rows differ from what was uploaded")
		}
		part := get(t, e, "Dataset", `{"dataset":"noise","offset":18,"limit":5}`)
		if !slices.Equal(column[int64](part, "index"), []int64{18, 19}) {
			t.Errorf("index %v", column[int64](part, "index"))
		}
		if none, err := prepare(t.Context(), e, "Dataset", `{"dataset":"noise","offset":50}`); err != nil || none.Rows != 0 {
			t.Errorf("beyond the end: %v rows, %v", none, err)
		}
	}
	// Bytes in the other layout, without labels.
	in := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.CHW, 2, 3, 3)}}
	u, err := openUpload(t.Context(), e, `{"op":"PutDataset","name":"bytes"}`, in)
	if err != nil {
		t.Fatal(err)
	}
	pixels := make([]uint8, 2*18)
	for i := range pixels {
		pixels[i] = uint8(7 * i)
	}
	for i := range 2 {
		if err := u.Write(api.Batch{Rows: 1, Cols: []any{pixels[18*i : 18*(i+1)]}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	r := get(t, e, "Dataset", `{"dataset":"bytes"}`)
	if !slices.Equal(column[uint8](r, "image"), pixels) || !slices.Equal(r.schema.Columns[0].Shape, []int{3, 2, 3}) ||
		column[int32](r, "label")[0] != -1 {
		t.Errorf("came back as %+v", r.schema.Columns[0])
	}
	act(t, e, "DeleteDataset", `{"dataset":"bytes"}`)
	_, err = prepare(t.Context(), e, "Dataset", `{"dataset":"bytes"}`)
	wantCode(t, "deleted", err, api.DatasetNotFound)
}

func TestDatasetUploadRejects(t *testing.T) {
	e := open(t)
	putImages(t, e, "noise", 3)
	image, label := tables.ImageColumn("image", api.Float32, data.HWC, 1, 2, 1),
		api.Column{Name: "label", Type: api.Int32}
	in := api.Schema{Columns: []api.Column{image, label}}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, b := range map[string]api.Batch{
		"NaN":            {Rows: 1, Cols: []any{[]float32{0, nan}, []int32{0}}},
		"Inf":            {Rows: 1, Cols: []any{[]float32{inf, 0}, []int32{0}}},
		"above one":      {Rows: 1, Cols: []any{[]float32{1.00001, 0}, []int32{0}}},
		"label below -1": {Rows: 1, Cols: []any{[]float32{0, 0}, []int32{-2}}},
		"no rows":        {Rows: 0, Cols: []any{[]float32{}, []int32{}}},
	} {
		_, err := put(e, `{"op":"PutDataset","name":"bad"}`, in, b)
		wantCode(t, name, err, api.BadTensor)
	}
	if _, err := put(e, `{"op":"PutDataset","name":"edge"}`, in,
		api.Batch{Rows: 1, Cols: []any{[]float32{1.0000005, -1}, []int32{-1}}}); err != nil {
		t.Errorf("a value within the tolerance: %v", err)
	}
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
	_, err := openUpload(t.Context(), e, `{"op":"PutDataset","name":"noise"}`, in)
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

// TestUploadsDoNotLieAbout: an upload that ends early leaves nothing behind.
func TestUploadsDoNotLieAbout(t *testing.T) {
	e := open(t)
	in := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.HWC, 2, 2, 1)}}
	u, err := openUpload(t.Context(), e, `{"op":"PutDataset","name":"half"}`, in)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Write(api.Batch{Rows: 1, Cols: []any{make([]uint8, 4)}}); err != nil {
		t.Fatal(err)
	}
	if err := atomicdir.Sweep(e.catalog.Folders().Datasets); err != nil { // as another process does when it starts
		t.Fatal(err)
	}
	if err := u.Write(api.Batch{Rows: 1, Cols: []any{make([]uint8, 4)}}); err != nil {
		t.Fatal(err)
	}
	u.Abort()
	if left, err := os.ReadDir(e.catalog.Folders().Datasets); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
