package tables

import (
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/train/data"
)

// Columns are checked by name, kind and size. The size determines axes without names, unless both layouts have it.
func TestColumnsOfImages(t *testing.T) {
	image := func(typ api.Type, w int) api.Column { return ImageColumn("latent", typ, data.HWC, 8, w, 1) }
	unnamed := func(shape ...int) api.Column {
		return api.Column{Name: "latent", Type: api.Float32, Kind: api.Tensor, Shape: shape}
	}
	turned := image(api.Float32, 8)
	turned.DimNames = []string{"W", "H", "C"}
	label := api.Column{Name: "label", Type: api.Int32}
	required := []api.Column{label, {Name: "latent", Type: api.Float32, Kind: api.Tensor}}
	check := func(columns []api.Column) (data.Layout, error) {
		in := api.Schema{Columns: columns}
		if err := CheckColumns(in, required, nil); err != nil {
			return "", err
		}
		return CheckImageSize(in.Columns[in.Index("latent")], "model", 8, 8, 1)
	}
	for want, c := range map[data.Layout]api.Column{data.HWC: unnamed(8, 8, 1), data.CHW: unnamed(1, 8, 8)} {
		if l, err := check([]api.Column{c, {Name: "label", Type: api.Uint8}}); err != nil || l != want {
			t.Errorf("shape %v: layout %q, %v", c.Shape, l, err)
		}
	}
	for says, columns := range map[string][]api.Column{
		`"label" is missing`:            {image(api.Float32, 8)},
		"<uint8>[8,8,1]":                {image(api.Uint8, 8), label},
		"8×8 pixels in 1 channels":      {image(api.Float32, 9), label},
		"three axes":                    {unnamed(64), label},
		"got float32":                   {{Name: "latent", Type: api.Float32}, label},
		"dim_names [W H C]":             {turned, label},
		`Column "more" is unknown`:      {image(api.Float32, 8), label, {Name: "more", Type: api.Int32}},
		`Column "label" is there twice`: {image(api.Float32, 8), label, label},
	} {
		_, err := check(columns)
		apitest.WantCode(t, says, err, api.BadTensor, says)
	}
	_, err := CheckImageSize(unnamed(3, 3, 3), "model", 3, 3, 3)
	apitest.WantCode(t, "both layouts", err, api.BadTensor, "must name its axes")
}
