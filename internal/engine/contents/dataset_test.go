package contents

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/train/data"
)

func TestDatasetUploads(t *testing.T) {
	dir := t.TempDir()
	foldertest.Dataset(t, dir+"/datasets/noise", 3, true)
	c := open(t, dir)
	image, label := tables.ImageColumn("image", api.Float32, data.HWC, 1, 2, 1), api.Column{Name: "label", Type: api.Int32}
	bytes := tables.ImageColumn("image", api.Uint8, data.HWC, 1, 2, 1)
	row := func(v float32) []api.Batch {
		return []api.Batch{{Rows: 1, Cols: []any{[]float32{0, v}, []int32{0}}}}
	}
	infinite := float32(math.Inf(1))
	for _, q := range []struct {
		what, fields string
		columns      []api.Column
		batches      []api.Batch
		code         api.Code
		says         string
	}{
		{"no rows", `"name":"bad"`, []api.Column{image, label}, nil, api.BadTensor, "no images"},
		{"above one", `"name":"bad"`, []api.Column{image, label}, row(2), api.BadTensor, "declares mean and scale"},
		{"infinite", `"name":"bad","scale":3`, []api.Column{image, label}, row(infinite), api.BadTensor, "Row 0"},
		{"bytes with a scale", `"name":"bad","scale":3`, []api.Column{bytes}, nil, api.BadRequest, "float32"},
		{"no image", `"name":"bad"`, []api.Column{label}, nil, api.BadTensor, "image"},
		{"a scalar", `"name":"bad"`, []api.Column{{Name: "image", Type: api.Float32}}, nil, api.BadTensor, "image"},
		{"taken", `"name":"noise"`, []api.Column{image, label}, nil, api.NameTaken, "noise"},
		{"name", `"name":"Bad Name"`, []api.Column{image, label}, nil, api.BadRequest, "name"},
	} {
		in := api.Schema{Columns: q.columns}
		_, err := apitest.Put(t.Context(), c.PutDataset, "PutDataset", "{"+q.fields+"}", in, q.batches...)
		wantCode(t, q.what, err, q.code, q.says)
	}
	if names := c.Catalog.DatasetInfos(); len(names) != 1 {
		t.Errorf("after the refusals there are %v", names)
	}
	// Bytes come back as they went.
	sent := api.Batch{Rows: 1, Cols: []any{[]uint8{3, 250}}}
	_, err := apitest.Put(t.Context(), c.PutDataset, "PutDataset", `{"name":"bytes"}`,
		api.Schema{Columns: []api.Column{bytes}}, sent)
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.SendDataset(t.Context(), api.Dataset{Dataset: "bytes"})
	if err == nil {
		err = job.Run(t.Context(), func(e api.Event) error {
			if got := e.Batch.Cols[0].([]uint8); !slices.Equal(got, []uint8{3, 250}) {
				t.Errorf("bytes come back as %v", got)
			}
			return nil
		})
	}
	if err != nil {
		t.Error(err)
	}
}

// basisTable describes vectors of h×w pixels.
func basisTable(h, w int) api.Schema {
	return api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{h, w}, DimNames: []string{"H", "W"}},
	}}
}

func TestBasisUploadsRefused(t *testing.T) {
	c := open(t, t.TempDir())
	vector := func(first, second float64) []api.Batch {
		return []api.Batch{{Rows: 1, Cols: []any{[]int32{-1}, []float64{first, second}}}}
	}
	for _, q := range []struct {
		what, name string
		in         api.Schema
		batches    []api.Batch
		code       api.Code
	}{
		{"not unit", "b", basisTable(1, 2), vector(1.01, 0), api.BadSchedule},
		{"NaN", "b", basisTable(1, 2), vector(math.NaN(), 0), api.BadTensor},
		{"none", "b", basisTable(1, 2), nil, api.BadTensor},
		{"empty shape", "b", basisTable(2, 0), nil, api.BadTensor},
		{"reserved", "dct", basisTable(1, 2), vector(1, 0), api.BadRequest},
	} {
		_, err := apitest.Put(t.Context(), c.PutBasis, "PutBasis", `{"name":"`+q.name+`"}`, q.in, q.batches...)
		wantCode(t, q.what, err, q.code)
	}
}

func TestMakeBasis(t *testing.T) {
	dir := t.TempDir()
	foldertest.Dataset(t, dir+"/datasets/noise", 60, true)
	c := open(t, dir)
	makeBasis := func(fields string) (api.BasisInfo, error) {
		req := apitest.Request[api.MakeBasis](t, "MakeBasis", "{"+fields+`,"dataset":"noise"}`)
		return c.MakeBasis(t.Context(), req, func(api.Meta) {})
	}
	for _, q := range []struct {
		fields, name string
		k            int
		perClass     bool
	}{
		{`"name":"all","kind":"pca"`, "all", 16, false},
		{`"name":"each","kind":"pca_per_class","k":5`, "each", 5, true},
		{`"name":"coarse","kind":"haar","k":4`, "coarse", 4, false},
		{`"name":"all","kind":"pca","k":63,"replace":true`, "all", 63, false},
		{`"name":"two","kind":"pca_per_class","clusters":[[0,2]]`, "two", 16, true},
	} {
		info, err := makeBasis(q.fields)
		if err != nil || info.Name != q.name || info.K != q.k || info.PerClass != q.perClass || info.Height != 8 ||
			info.Width != 8 {
			t.Errorf("%s: %+v, %v", q.fields, info, err)
		}
		var images int64
		for _, s := range info.Spans {
			images += s.Images
			if !(s.Share > 0 && s.Share <= 1) {
				t.Errorf("%s: %+v", q.fields, s)
			}
		}
		if q.name != "coarse" && images != 60 {
			t.Errorf("%s: components of %d images", q.fields, images)
		}
	}
	for fields, code := range map[string]api.Code{
		`"name":"coarse","kind":"pca"`:                      api.NameTaken,
		`"name":"b","kind":"pca","k":64`:                    api.BadRequest,
		`"name":"b","kind":"pca","clusters":[[0,1]]`:        api.BadRequest,
		`"name":"b","kind":"pca","model":"nobody"`:          api.ModelNotFound,
		`"name":"b","kind":"haar","k":1,"clusters":[[0,1]]`: api.BadRequest,
	} {
		_, err := makeBasis(fields)
		wantCode(t, fields, err, code)
	}
	stored := open(t, dir).Catalog // after a restart
	var names []string
	for _, b := range stored.BasisInfos() {
		names = append(names, b.Name)
	}
	if !slices.Equal(names, []string{"all", "coarse", "each", "two"}) {
		t.Errorf("stored %v", names)
	}
	if two, err := stored.Basis("two"); err != nil || len(two.Groups()) != 2 {
		t.Errorf("clusters were parted, %v", err)
	}
}
