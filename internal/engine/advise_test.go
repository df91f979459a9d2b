package engine

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

func advise(t *testing.T, e *Engine, body string) api.Advice {
	t.Helper()
	reply, err := perform(t.Context(), e, "Advise", body, nil)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return reply.(api.Advice)
}

// Four images ±a e_00 ± b e_01 of 2×2 pixels, e_uv the functions of the DCT, have the variances a² and b², and none in
// the other two directions.
func TestAdviseOnKnownGaussian(t *testing.T) {
	const a, b = 1.0, 0.05
	e := open(t)
	var images []float32
	for _, s := range [][2]float32{{a, b}, {a, -b}, {-a, b}, {-a, -b}} {
		left, right := (s[0]+s[1])/2, (s[0]-s[1])/2
		images = append(images, left, right, left, right)
	}
	in := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Float32, data.HWC, 2, 2, 1)}}
	if _, err := put(e, `{"op":"PutDataset","name":"four"}`, in, api.Batch{Rows: 4, Cols: []any{images}}); err != nil {
		t.Fatal(err)
	}
	got := advise(t, e, `{"dataset":"four","nfe":[5,18]}`)
	near := func(what string, have, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(have-want) <= tolerance) {
			t.Errorf("%s %v, want %v", what, have, want)
		}
	}
	sigma := math.Sqrt((a*a + b*b) / 4)
	near("sigma_data", got.SigmaData, sigma, 1e-6)
	near("sigma_min", got.SigmaMin, 0.002*sigma/0.5, 1e-8)
	near("c", got.C, a*a+b*b, 1e-6)
	near("T", got.T, got.SigmaMax*got.SigmaMax, 1e-12)
	var missed float64
	for _, v := range []float64{a * a, b * b} {
		missed += v * math.Pow(1-math.Sqrt(got.T/(got.T+v)), 2)
	}
	near("missed from √T", missed, 1e-3*(a*a+b*b), 1e-8)

	r := func(s float64) float64 {
		return (a*a/(a*a+s*s) + b*b/(b*b+s*s)) / 4 * (s*s + sigma*sigma) / (sigma * sigma)
	}
	moment := func(k float64) float64 {
		return quad.Fixed(func(l float64) float64 { return math.Pow(l, k) * (1 - r(math.Exp(l))) },
			math.Log(got.Sigma[0]), math.Log(100*got.SigmaMax), 400, quad.Legendre{}, 0)
	}
	mean := moment(1) / moment(0)
	near("r", got.Ratio[9], r(got.Sigma[9]), 1e-7)
	near("P_mean", got.PMean, mean, 0.1) // a sum over noise levels a fifth apart
	near("P_std", got.PStd, math.Sqrt(moment(2)/moment(0)-mean*mean), 0.1)

	s := got.Subspaces // a direction each on either side of the cut: little to gain
	if s.Worth || s.Basis != "dct" || len(s.Cuts) != 1 || s.Cuts[0] != 1 || s.Stderr != 0 || s.Gain < 0 || s.Gain > 0.1 {
		t.Errorf("subspaces %+v", s)
	}
	heun := makeGaussian(t, e, `{"name":"s","kind":"gaussian","dataset":"four","solver":"heun","nfe":5,"T":`+
		fmt.Sprint(got.T)+`}`).Bench.Baseline
	w := got.Samplers[0]
	if w.NFE != 5 || w.EDM.SigmaMax != got.SigmaMax || w.IPNDM.Solver != "ipndm" || !(w.IPNDM.W2 < w.EDM.W2) {
		t.Errorf("samplers %+v", w)
	}
	if heun.Grid == "edm" {
		near("W2² of Heun's method", w.EDM.W2, heun.W2, 1e-12)
	}
	names := ""
	for _, i := range got.Items {
		names += i.Name + " "
		if i.Value == "" || !strings.HasSuffix(i.Because, ".") {
			t.Errorf("item %+v", i)
		}
	}
	want := "sigma_data sigma_min sigma_max T c P_mean P_std training subspaces schedule 5 evaluations 18 evaluations "
	if names != want {
		t.Errorf("items %q, want %q", names, want)
	}
}

// A model that is the data's Gaussian leaves what the Gaussian leaves, and so changes nothing but by its errors.
func TestAdviseWithModel(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 512)
	act(t, e, "MakeModel", `{"name":"law","dataset":"smooth","floor":1e-6}`)
	alone, got := advise(t, e, `{"dataset":"smooth"}`), advise(t, e, `{"dataset":"smooth","model":"law","seed":3}`)
	for i, r := range got.ModelRatio {
		if math.Abs(r-got.Ratio[i]) > 0.12*got.Ratio[i] { // more than ten standard errors of 256 images of 64 values
			t.Errorf("at σ %g the model leaves %g, the Gaussian %g", got.Sigma[i], r, got.Ratio[i])
		}
	}
	if n := len(got.ModelRatio); n == 0 || n >= len(got.Sigma) || alone.ModelRatio != nil {
		t.Errorf("the model is measured at %d of %d levels", n, len(got.Sigma))
	}
	if math.Abs(alone.PMean-got.PMean) > 0.15 || math.Abs(alone.PStd-got.PStd) > 0.15 || got.Subspaces.Stderr == 0 {
		t.Errorf("P_mean and P_std %g, %g, on the Gaussian %g, %g", got.PMean, got.PStd, alone.PMean, alone.PStd)
	}
	if text := fmt.Sprint(got.Items); !strings.Contains(text, "model law") ||
		strings.Contains(fmt.Sprint(alone.Items), "law ") {
		t.Error(text)
	}
}

// Time, sampling and sigma_max end where the model's noise levels do.
func TestAdviseWithinModel(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 64)
	low := strings.Replace(tiny, "{", `{"sigma_max":0.5,`, 1)
	writeModel(t, filepath.Join(e.catalog.Folders().Models, "low"), low, 1)
	act(t, e, "LoadModel", `{"name":"low"}`)
	got := advise(t, e, `{"dataset":"smooth","model":"low","nfe":[3],"samples":2}`)
	if got.T != 0.25 || got.SigmaMax != 0.5 || got.Samplers[0].IPNDM.SigmaMax != 0.5 ||
		got.Samplers[0].EDM.SigmaMax != 0.5 {
		t.Errorf("T %g, σ_max %g, %+v", got.T, got.SigmaMax, got.Samplers)
	}
}

func TestAdviseRefuses(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 8)
	for name, size := range map[string]int{"flat": 2, "wide": 5000} {
		in := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.HWC, 1, size, 1)}}
		rows := api.Batch{Rows: 2, Cols: []any{make([]uint8, 2*size)}}
		if _, err := put(e, `{"op":"PutDataset","name":"`+name+`"}`, in, rows); err != nil {
			t.Fatal(err)
		}
	}
	for body, code := range map[string]api.Code{
		`{}`:                                   api.BadRequest,
		`{"dataset":"nothing"}`:                api.DatasetNotFound,
		`{"dataset":"smooth","model":"x"}`:     api.ModelNotFound,
		`{"dataset":"flat"}`:                   api.BadRequest, // all alike
		`{"dataset":"flat","model":"tiny"}`:    api.BadRequest, // of another size
		`{"dataset":"wide"}`:                   api.TooLarge,
		`{"dataset":"smooth","nfe":[]}`:        api.BadRequest,
		`{"dataset":"smooth","nfe":[2]}`:       api.BadRequest,
		`{"dataset":"smooth","nfe":[257]}`:     api.TooLarge,
		`{"dataset":"smooth","solver":"heun"}`: api.BadRequest,
	} {
		_, err := perform(t.Context(), e, "Advise", body, nil)
		wantCode(t, body, err, code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := perform(ctx, e, "Advise", `{"dataset":"smooth","model":"tiny"}`, func(api.Meta) { cancel() })
	wantCode(t, "cancelled", err, api.Cancelled)
}
