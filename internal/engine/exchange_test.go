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
	d, flow, raw := column[float32](got, "denoised"), column[float32](got, "flow"), column[float32](got, "raw")
	for i := range d { // D = x + σ·flow, and EDM's preconditioning of the raw output
		s := sigma[i/64]
		skip, out := 0.25/(s*s+0.25), s*0.5/math.Sqrt(s*s+0.25)
		if want := float64(img[i]) + s*float64(flow[i]); math.Abs(want-float64(d[i])) > 1e-4*(1+s) {
			t.Fatalf("value %d: D is %v, x + σ flow is %v", i, d[i], want)
		}
		if want := skip*float64(img[i]) + out*float64(raw[i]); math.Abs(want-float64(d[i])) > 1e-4*(1+s) {
			t.Fatalf("value %d: D is %v, c_skip x + c_out F is %v", i, d[i], want)
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

func TestScheduleGradient(t *testing.T) {
	e := open(t)
	act(t, e, "MakeSchedule", `{"name":"s","kind":"log-linear","T":100,"knots":6}`)
	in := api.Schema{Columns: []api.Column{
		tables.ImageColumn("image", api.Float32, data.HWC, 8, 8, 1),
		tables.ImageColumn("noise", api.Float32, data.HWC, 8, 8, 1),
		tables.ImageColumn("probe", api.Float32, data.HWC, 8, 8, 1),
		{Name: "t", Type: api.Float64},
		{Name: "label", Type: api.Int32},
	}}
	x, got := converse(t, e, "ScheduleGradient", `{"schedule":"s","model":"tiny"}`, in)
	times := []float64{3, 50, 99, 41, 77}
	for i, part := range [][2]int{{0, 2}, {2, 5}} {
		n := part[1] - part[0]
		got.send(t, x, n, noise(n, uint64(10+i)), noise(n, uint64(20+i)), noise(n, uint64(30+i)),
			times[part[0]:part[1]], make([]int32, n))
	}
	end, err := x.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The gradient with respect to ln g at the knots, from the rows: g and ġ are linear in each of the two knots around t.
	s, err := e.catalog.ScheduleNamed(api.ScheduleRef{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	path := s.At(0, 0)
	tau, _ := path.Knots()
	want := make([]float64, len(tau))
	for i, at := range times {
		g, gdot := path.Eval(at)
		k := 0
		for tau[k+1] < at {
			k++
		}
		width := tau[k+1] - tau[k]
		right := (at - tau[k]) / width // ln g = (1−right) ln g_k + right ln g_{k+1}; ġ = g (ln g_{k+1} − ln g_k)/width
		a, b := column[float64](got, "A")[i], column[float64](got, "B")[i]
		want[k] += (a*g*(1-right) + b*(gdot*(1-right)-g/width)) / 5
		want[k+1] += (a*g*right + b*(gdot*right+g/width)) / 5
	}
	dlogg := end["d_logg"].([][][]float64)[0][0]
	for k := range want {
		if math.Abs(dlogg[k]-want[k]) > 1e-9*(1+math.Abs(want[k])) {
			t.Errorf("d_logg[%d] is %v, want %v", k, dlogg[k], want[k])
		}
	}
	if d := end["d_theta"].([][][]float64)[0][0]; len(d) != len(tau)-1 {
		t.Errorf("d_theta has %d entries for %d knots", len(d), len(tau))
	}
	late := api.Batch{Rows: 1, Cols: []any{noise(1, 1), noise(1, 2), noise(1, 3), []float64{101}, []int32{0}}}
	wantCode(t, "t beyond T", x.Do(t.Context(), late, got.add), api.BadTensor)
	in.Columns[1] = tables.ImageColumn("noise", api.Float32, data.CHW, 8, 8, 1)
	_, err = openExchange(t.Context(), e, "ScheduleGradient", `{"schedule":"s","model":"tiny"}`, in)
	wantCode(t, "layouts differ", err, api.BadTensor)
}
