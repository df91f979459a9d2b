package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// noise returns n unit normal images of the tiny model.
func noise(n int, seed uint64) []float32 {
	x := make([]float32, 64*n)
	latent.Normal(seed, 0, x)
	return x
}

func TestDenoise(t *testing.T) {
	e := open(t)
	in := api.Schema{Columns: []api.Column{
		{Name: "sigma", Type: api.Float64},
		{Name: "label", Type: api.Int32},
		tables.ImageColumn("x", api.Float32, data.CHW, 8, 8, 1),
	}}
	x, got := converse(t, e, "Denoise", `{"model":"tiny"}`, in)
	if got := x.Out.Columns[0].DimNames; !slices.Equal(got, []string{"C", "H", "W"}) {
		t.Errorf("the reply's dim_names are %v, not those of x", got)
	}
	const n = 70 // more than one device batch
	img, sigma, labels := noise(n, 3), make([]float64, n), make([]int32, n)
	for i := range sigma {
		sigma[i], labels[i] = 0.05*float64(i+1), int32(i%4)-1
	}
	got.send(t, x, n, sigma, labels, img)
	denoised, flow := column[float32](got, "denoised"), column[float32](got, "flow")
	for i, d := range denoised { // D = x + σ·flow
		s := sigma[i/64]
		if want := float64(img[i]) + s*float64(flow[i]); math.Abs(want-float64(d)) > 1e-4*(1+s) {
			t.Fatalf("value %d: D is %v, x + σ flow is %v", i, d, want)
		}
	}
	for name, b := range map[string]api.Batch{
		"zero sigma": {Rows: 1, Cols: []any{[]float64{0}, []int32{0}, noise(1, 1)}},
		"NaN sigma":  {Rows: 1, Cols: []any{[]float64{math.NaN()}, []int32{0}, noise(1, 1)}},
		"Inf in x":   {Rows: 1, Cols: []any{[]float64{1}, []int32{0}, slices.Repeat([]float32{float32(math.Inf(1))}, 64)}},
	} {
		wantCode(t, name, x.Do(t.Context(), b, got.add), api.BadTensor)
	}
}

func TestDenoiseByVariances(t *testing.T) {
	e := open(t)
	in := func(j int) api.Schema {
		return api.Schema{Columns: []api.Column{
			tables.ImageColumn("x", api.Float32, data.HWC, 8, 8, 1),
			{Name: "label", Type: api.Int32},
			{Name: "g", Type: api.Float64, Kind: api.List, Shape: []int{j}},
		}}
	}
	answer := func(body string, g ...float64) []float32 {
		t.Helper()
		x, got := converse(t, e, "Denoise", body, in(len(g)))
		got.send(t, x, 1, noise(1, 5), []int32{1}, g)
		return column[float32](got, "flow")
	}
	one, two := answer(`{"model":"tiny"}`, 2.25), answer(`{"model":"tiny","basis":"dct"}`, 2.25, 2.25)
	for i := range one {
		if math.Abs(float64(one[i]-two[i])) > 1e-4 {
			t.Fatalf("value %d: equal variances in two subspaces give %v, one gives %v", i, two[i], one[i])
		}
	}
	for _, c := range []struct {
		basis string
		j     int
		code  api.Code
	}{{`"dct"`, 3, api.BadTensor}, {`"dct","k":5`, 2, api.BadRequest}, {`"nobody"`, 2, api.BasisNotFound}} {
		_, err := openExchange(t.Context(), e, "Denoise", `{"model":"tiny","basis":`+c.basis+`}`, in(c.j))
		wantCode(t, c.basis, err, c.code)
	}
}

// ScheduleGradient refuses times beyond T and layouts that differ. Its numbers are tested in Python.
func TestScheduleGradientRejects(t *testing.T) {
	e := open(t)
	image := func(name string, l data.Layout) api.Column { return tables.ImageColumn(name, api.Float32, l, 8, 8, 1) }
	in := api.Schema{Columns: []api.Column{
		image("image", data.HWC), image("noise", data.HWC), image("probe", data.HWC),
		{Name: "t", Type: api.Float64},
		{Name: "label", Type: api.Int32},
	}}
	const body = `{"schedule":{"edm":{"T":100}},"model":"tiny"}`
	x, got := converse(t, e, "ScheduleGradient", body, in)
	late := api.Batch{Rows: 1, Cols: []any{noise(1, 1), noise(1, 2), noise(1, 3), []float64{101}, []int32{0}}}
	wantCode(t, "t beyond T", x.Do(t.Context(), late, got.add), api.BadTensor)
	in.Columns[1] = image("noise", data.CHW)
	_, err := openExchange(t.Context(), e, "ScheduleGradient", body, in)
	wantCode(t, "layouts differ", err, api.BadTensor)
}
