package engine

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// putSmooth uploads n images of 8×8 pixels whose variance falls with frequency: noise, averaged over 3×3 pixels.
func putSmooth(t *testing.T, e *Engine, name string, n int) {
	t.Helper()
	putSmoothOf(t, e, name, n, 8)
}

// putSmoothOf is putSmooth of images of another size.
func putSmoothOf(t *testing.T, e *Engine, name string, n, size int) {
	t.Helper()
	x, smooth := make([]float32, n*size*size), make([]float32, n*size*size)
	latent.Normal(5, 0, x)
	for i := range smooth {
		at, y0, x0 := i/(size*size)*size*size, i/size%size, i%size
		for y := max(y0-1, 0); y <= min(y0+1, size-1); y++ {
			for k := max(x0-1, 0); k <= min(x0+1, size-1); k++ {
				smooth[i] += x[at+size*y+k]
			}
		}
		smooth[i] = float32(math.Tanh(float64(smooth[i]) / 3))
	}
	in := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Float32, data.HWC, size, size, 1)}}
	if rows, err := put(e, `{"op":"PutDataset","name":"`+name+`"}`, in,
		api.Batch{Rows: n, Cols: []any{smooth}}); err != nil || rows != int64(n) {
		t.Fatalf("%d rows, %v", rows, err)
	}
}

func makeGaussian(t *testing.T, e *Engine, body string) api.ScheduleInfo {
	t.Helper()
	reply, err := perform(t.Context(), e, "MakeSchedule", body, nil)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return reply.(api.ScheduleInfo)
}

// The nodes beat EDM's, more subspaces are no worse than one, and each report adds up.
func TestGaussianScheduleBench(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	one := makeGaussian(t, e, `{"name":"one","kind":"gaussian","dataset":"smooth","solver":"dpmpp2m","nfe":5}`)
	two := makeGaussian(t, e,
		`{"name":"two","kind":"gaussian","dataset":"smooth","solver":"dpmpp2m","nfe":5,"basis":"dct","k":16,"T":400}`)
	if one.J != 1 || one.Basis != "none" || one.T != 6400 || two.J != 2 || two.Basis != "dct" || two.K != 16 ||
		two.T != 400 {
		t.Errorf("made %+v and %+v", one, two)
	}
	for _, info := range []api.ScheduleInfo{one, two} {
		b := info.Bench
		if b.Solver != "dpmpp2m" || b.Nodes.NFE != 5 || b.Nodes.Steps != 5 || b.Baseline.NFE != 5 || b.Baseline.Steps != 5 {
			t.Errorf("%s: bench of %+v", info.Name, b)
		}
		if !(b.Nodes.W2 > 0 && b.Nodes.W2 < b.Baseline.W2/2) {
			t.Errorf("%s: the nodes are at %g, EDM's at %g", info.Name, b.Nodes.W2, b.Baseline.W2)
		}
		var dims int
		var sum [3]float64
		for _, band := range b.Bands {
			dims += band.Dims
			for i, v := range []float64{band.Variance, band.Nodes, band.Baseline} {
				sum[i] += v
			}
		}
		if len(b.Bands) != info.J || dims != 64 {
			t.Errorf("%s: %d bands of %d directions", info.Name, len(b.Bands), dims)
		}
		for i, want := range []float64{1, b.Nodes.W2, b.Baseline.W2} {
			if math.Abs(sum[i]-want) > 1e-9*want {
				t.Errorf("%s: the bands' parts add up to %v, want %g", info.Name, sum, want)
			}
		}
	}
}

// Whoever samples with that solver and so many evaluations steps through the nodes and spends no more, over a restart
// too.
func TestGaussianScheduleSamples(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 24)
	for i, c := range []struct {
		solver, basis string
		nfe, steps    int
	}{{"ipndm", "dct", 4, 4}, {"heun", "dct", 5, 2}, {"unipc", "none", 12, 12}} {
		name := fmt.Sprintf("s%d", i)
		info := makeGaussian(t, e,
			fmt.Sprintf(`{"name":%q,"kind":"gaussian","dataset":"smooth","solver":%q,"nfe":%d,"basis":%q,"T":400,"g0":1e-6}`,
				name, c.solver, c.nfe, c.basis))
		if info.Bench.Nodes.Steps != c.steps {
			t.Errorf("%s: %d steps, want %d", c.solver, info.Bench.Nodes.Steps, c.steps)
		}
		for _, e := range []*Engine{e, reopen(t, filepath.Dir(e.catalog.Folders().Models), Config{})} {
			r := get(t, e, "Sample", fmt.Sprintf(`{"model":"tiny","labels":[0,1],"schedule":%q,"solver":%q,"nfe":%d}`, name,
				c.solver, c.nfe))
			for _, nfe := range column[int32](r, "nfe") {
				if int(nfe) != info.Bench.Nodes.NFE {
					t.Errorf("%s: %d evaluations, the schedule is made for %d", c.solver, nfe, info.Bench.Nodes.NFE)
				}
			}
		}
		levels := column[float64](get(t, e, "EvaluateSchedule", fmt.Sprintf(`{"schedule":%q,"points":%d}`, name, c.steps+1)),
			"g")
		if len(levels) != info.J*(c.steps+1) {
			t.Fatalf("%s: levels %v", c.solver, levels)
		}
		for j := range info.J {
			own := levels[j*(c.steps+1) : (j+1)*(c.steps+1)]
			if own[0] != 1e-6 || own[c.steps] != 400 {
				t.Errorf("%s: levels of subspace %d run from %g to %g", c.solver, j, own[0], own[c.steps])
			}
		}
	}
}

func TestGaussianScheduleErrors(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 8)
	flat := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.HWC, 1, 2, 1)}}
	if _, err := put(e, `{"op":"PutDataset","name":"flat"}`, flat,
		api.Batch{Rows: 2, Cols: []any{[]uint8{1, 2, 1, 2}}}); err != nil {
		t.Fatal(err)
	}
	wide := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.HWC, 1, 5000, 1)}}
	if _, err := put(e, `{"op":"PutDataset","name":"wide"}`, wide,
		api.Batch{Rows: 1, Cols: []any{make([]uint8, 5000)}}); err != nil {
		t.Fatal(err)
	}
	for body, code := range map[string]api.Code{
		`"dataset":"nothing","solver":"ab","nfe":3`:  api.DatasetNotFound,
		`"dataset":"flat","solver":"ab","nfe":3`:     api.BadRequest, // no variance
		`"dataset":"wide","solver":"ab","nfe":3`:     api.TooLarge,
		`"dataset":"smooth","solver":"heun","nfe":1`: api.BadRequest, // half a step
		`"dataset":"smooth","solver":"ab","nfe":100`: api.TooLarge,
	} {
		_, err := perform(t.Context(), e, "MakeSchedule", `{"name":"s","kind":"gaussian",`+body+`}`, nil)
		wantCode(t, body, err, code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := perform(ctx, e, "MakeSchedule", `{"name":"s","kind":"gaussian","dataset":"smooth","solver":"ab","nfe":3}`,
		func(api.Meta) { cancel() })
	wantCode(t, "cancelled", err, api.Cancelled)
	_, err = perform(t.Context(), e, "DeleteSchedule", `{"schedule":"s"}`, nil)
	wantCode(t, "nothing was stored", err, api.ScheduleNotFound)
}
