package parametrization_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
)

// ddpm is ᾱ of DDPM's linear schedule in n steps.
func ddpm(n int) []float64 {
	out, a := make([]float64, n), 1.0
	for i := range out {
		a *= 1 - (1e-4+(0.02-1e-4)*float64(i)/float64(n-1))*1000/float64(n)
		out[i] = a
	}
	return out
}

// each lists one configuration of every kind, and what is special of it.
func each() map[string]parametrization.Config {
	return map[string]parametrization.Config{
		"edm":      {Kind: parametrization.EDM},
		"edm 1.3":  {Kind: parametrization.EDM, SigmaData: 1.3},
		"vp":       {Kind: parametrization.VP},
		"ve":       {Kind: parametrization.VE},
		"epsilon":  {Kind: parametrization.Epsilon, AlphasCumprod: ddpm(1000)},
		"v":        {Kind: parametrization.V, AlphasCumprod: ddpm(50)},
		"x0":       {Kind: parametrization.X0, AlphasCumprod: ddpm(1000)},
		"flow":     {Kind: parametrization.Flow, Steps: 1000},
		"to data":  {Kind: parametrization.Flow, ToData: true},
		"zero snr": {Kind: parametrization.V, AlphasCumprod: append(ddpm(1000), 0)},
	}
}

func of(t *testing.T, c parametrization.Config) *parametrization.Parametrization {
	t.Helper()
	p, err := parametrization.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(math.Abs(want), 1e-300)) && !(math.Abs(got-want) < 1e-30) {
		t.Errorf("%s: %.17g, want %.17g", what, got, want)
	}
}

// TestPublishedFormulas: D made of the four numbers is D as the papers write it, with their names for what multiplies
// what.
func TestPublishedFormulas(t *testing.T) {
	const x, f = 0.7, -1.9 // the noisy image and the network's output
	for name, c := range each() {
		p := of(t, c)
		for _, sigma := range []float64{1e-3, 0.03, 0.5, 1, 14.6, 80, 3000} {
			var d, in float64
			alpha := 1 / math.Sqrt(1+sigma*sigma) // √ᾱ
			switch c.Kind {
			case parametrization.EDM:
				s := p.SigmaData()
				skip, out := s*s/(sigma*sigma+s*s), sigma*s/math.Sqrt(sigma*sigma+s*s)
				in, d = 1/math.Sqrt(sigma*sigma+s*s), skip*x+out*f
			case parametrization.VP, parametrization.Epsilon:
				in, d = alpha, x-sigma*f
			case parametrization.VE:
				in, d = 1, x+sigma*f
			case parametrization.V:
				in, d = alpha, alpha*(alpha*x)-sigma*alpha*f
			case parametrization.X0:
				in, d = alpha, f
			case parametrization.Flow:
				time := sigma / (1 + sigma) // x_t = (1−t) x_0 + t ε, dx_t/dt = ε − x_0
				velocity := f
				if c.ToData {
					velocity = -f
				}
				in = 1 / (1 + sigma)
				d = (1-time)*x - time*velocity
			}
			v := p.At(sigma * sigma)
			near(t, name+" input", v.In, in, 1e-14)
			near(t, name+" denoised", v.Keep*x+sigma*v.Out*f, d, 1e-12)
			near(t, name+" flow", sigma*(v.Skip*x+v.Out*f), d-x, 1e-9)
		}
	}
}

// TestLabels: noise labels as published.
func TestLabels(t *testing.T) {
	all := each()
	near(t, "edm", of(t, all["edm"]).Label(3), math.Log(3)/4, 1e-14)
	near(t, "ve", of(t, all["ve"]).Label(3), math.Log(1.5), 1e-14)
	near(t, "flow", of(t, all["flow"]).Label(3), 750, 1e-14)
	near(t, "to data", of(t, all["to data"]).Label(3), 0.25, 1e-14)
	vp := of(t, all["vp"])
	for _, u := range []float64{1e-5, 0.01, 0.5, 1} {
		sigma := math.Sqrt(math.Expm1(0.5*19.9*u*u + 0.1*u))
		near(t, "vp", vp.Label(sigma), 999*u, 1e-9)
	}
	epsilon := of(t, all["epsilon"])
	for i, a := range all["epsilon"].AlphasCumprod {
		near(t, "epsilon", epsilon.Label(math.Sqrt((1-a)/a)), float64(i), 1e-10)
	}
	a := all["epsilon"].AlphasCumprod
	between := math.Sqrt(math.Sqrt((1 - a[3]) / a[3] * (1 - a[4]) / a[4]))
	near(t, "halfway in ln σ", epsilon.Label(between), 3.5, 1e-10)
	near(t, "below the table", epsilon.Label(1e-9), 0, 0)
	near(t, "above the table", epsilon.Label(1e9), 999, 0)
	own := of(t, parametrization.Config{
		Kind: parametrization.Epsilon, AlphasCumprod: []float64{0.9, 0.5}, Timesteps: []float64{7, 3},
	})
	near(t, "labels of one's own", own.Label(1), 3, 1e-14)
}

// TestRanges: the noise levels that a kind's constants tell, and what is left of them.
func TestRanges(t *testing.T) {
	all := each()
	table := all["epsilon"].AlphasCumprod
	for _, c := range []struct {
		name   string
		config parametrization.Config
		lo, hi float64
	}{
		{"edm", all["edm"], 0, 0},
		{"vp", all["vp"], math.Sqrt(math.Expm1(1e-6 + 0.5*19.9*1e-10)), math.Sqrt(math.Expm1(10.05))},
		{"ve", all["ve"], 0.02, 100},
		{"epsilon", all["epsilon"], math.Sqrt((1 - table[0]) / table[0]), math.Sqrt((1 - table[999]) / table[999])},
		{"narrower", parametrization.Config{Kind: "ve", SigmaMin: 0.03, SigmaMax: 14.6}, 0.03, 14.6},
		{"wider", parametrization.Config{Kind: "ve", SigmaMin: 0.001, SigmaMax: 1000}, 0.001, 1000},
		{"no wider", parametrization.Config{Kind: "v", AlphasCumprod: []float64{0.5, 0.1}, SigmaMax: 1000}, 1, 3},
	} {
		r := of(t, c.config).Range()
		near(t, c.name+" from", r.Min, c.lo, 1e-12)
		near(t, c.name+" to", r.Max, c.hi, 1e-12)
	}
	if v := of(t, all["zero snr"]).Range().Max; math.IsInf(v, 0) || v < 100 {
		t.Errorf("a last level of pure noise is left out; the range ends at %v", v)
	}
}

// run runs a graph on one vector.
func run(t *testing.T, dtype dtypes.DType, values any, n int, key string,
	build func(x *graph.Node) []*graph.Node,
) [][]float64 {
	t.Helper()
	autodiff.Install()
	dev, ctx := devicetest.Open(t), context.Background()
	p, err := dev.Program(ctx, t.Name()+key+dtype.String(), func(g *graph.Graph) []*graph.Node {
		out := build(graph.Parameter(g, "x", shapes.Make(dtype, n)))
		for i := range out {
			out[i] = graph.ConvertDType(out[i], dtypes.Float64)
		}
		return out
	})
	if err != nil {
		t.Fatal(err)
	}
	var x *device.Buffer
	switch values := values.(type) {
	case []float64:
		x, err = dev.Upload(values, n)
	case []float32:
		x, err = dev.Upload(values, n)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	bufs, err := p.Run(ctx, device.Use(x))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]float64
	for _, b := range bufs {
		v := make([]float64, n)
		if err := b.Read(v); err != nil {
			t.Fatal(err)
		}
		b.Release()
		out = append(out, v)
	}
	return out
}

var sigmas = []float64{3.2e-5, 0.002, 0.03, 0.31, 0.5, 1.02, 3.7, 14.6, 80, 990}

// TestGraphIsTheHostsFormula: the functions and their derivatives, in float64 to rounding and in float32 to a few units
// in the last place wherever the derivative is not a difference itself.
func TestGraphIsTheHostsFormula(t *testing.T) {
	n := len(sigmas)
	g64, g32 := make([]float64, n), make([]float32, n)
	for i, s := range sigmas {
		g32[i] = float32(s * s)
		g64[i] = float64(g32[i])
	}
	for name, c := range each() {
		p := of(t, c)
		build := func(g *graph.Node) []*graph.Node {
			c := p.Coefficients(g)
			out := []*graph.Node{c.In, c.Skip, c.Out, c.Keep, c.Mix}
			for _, v := range out[:5:5] {
				out = append(out, graph.Gradient(graph.ReduceAllSum(v), g)[0])
			}
			return out
		}
		at := func(g float64) [5]float64 {
			v := p.At(g)
			return [5]float64{v.In, v.Skip, v.Out, v.Keep, v.In * math.Sqrt(g)}
		}
		wide := run(t, dtypes.Float64, g64, n, name, build)
		narrow := run(t, dtypes.Float32, g32, n, name, build)
		for i, g := range g64 {
			h := 1e-4 * g
			here, a, b, c, d := at(g), at(g-2*h), at(g-h), at(g+h), at(g+2*h)
			for k, what := range []string{"in", "skip", "out", "keep", "in √g"} {
				near(t, name+" "+what, wide[k][i], here[k], 1e-13)
				near(t, name+" float32 "+what, narrow[k][i], here[k], 1e-6)
				slope := (a[k] - 8*b[k] + 8*c[k] - d[k]) / (12 * h)
				if !(math.Abs(wide[5+k][i]-slope) <= 1e-9*math.Max(math.Abs(slope), math.Abs(here[k]/g))) {
					t.Errorf("%s %s' at g = %g: %g, want %g", name, what, g, wide[5+k][i], slope)
				}
				scale := math.Abs(wide[5+k][i])
				if what == "skip" { // changes sign
					scale = math.Max(scale, math.Abs(here[k]/g))
				}
				if !(math.Abs(narrow[5+k][i]-wide[5+k][i]) <= 2e-6*scale) {
					t.Errorf("%s %s' at g = %g in float32: %g, want %g", name, what, g, narrow[5+k][i], wide[5+k][i])
				}
			}
		}
	}
}

// TestGraphsLabel: the label and its derivative by ln σ.
func TestGraphsLabel(t *testing.T) {
	n := len(sigmas)
	l64, l32 := make([]float64, n), make([]float32, n)
	for i, s := range sigmas {
		l32[i] = float32(math.Log(s))
		l64[i] = float64(l32[i])
	}
	for name, c := range each() {
		p := of(t, c)
		build := func(l *graph.Node) []*graph.Node {
			v := p.Noise(l)
			return []*graph.Node{v, graph.Gradient(graph.ReduceAllSum(v), l)[0]}
		}
		wide := run(t, dtypes.Float64, l64, n, name, build)
		narrow := run(t, dtypes.Float32, l32, n, name, build)
		for i, l := range l64 {
			at := func(l float64) float64 { return p.Label(math.Exp(l)) }
			const h = 1e-5 // far within every piece of the tables, whose knots are none of the noise levels
			scale := math.Max(math.Abs(at(l)), 1)
			slope := (at(l+h) - at(l-h)) / (2 * h)
			if !(math.Abs(wide[0][i]-at(l)) <= 1e-12*scale) {
				t.Errorf("%s label at %g: %g, want %g", name, l, wide[0][i], at(l))
			}
			if !(math.Abs(wide[1][i]-slope) <= 1e-6*math.Max(math.Abs(slope), scale)) {
				t.Errorf("%s label' at %g: %g, want %g", name, l, wide[1][i], slope)
			}
			if !(math.Abs(narrow[0][i]-wide[0][i]) <= 1e-5*scale) {
				t.Errorf("%s label at %g in float32: %g, want %g", name, l, narrow[0][i], wide[0][i])
			}
		}
	}
}

// TestRefusals: what no network can mean is an error that names the field.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                        "kind",
		`{"kind":"eps"}`:            "epsilon",
		`{"kind":"edm","beta_d":3}`: "beta_d: is no field of the kind edm",
		`{"kind":"epsilon"}`:        "alphas_cumprod: must hold at least two values",
		`{"kind":"v","alphas_cumprod":[0.5,0.9]}`:                    "decrease strictly",
		`{"kind":"v","alphas_cumprod":[1,0.9]}`:                      "within (0, 1)",
		`{"kind":"v","alphas_cumprod":[0.9,0.5],"timesteps":[1]}`:    "timesteps",
		`{"kind":"ve","sigma_min":2,"sigma_max":1}`:                  "sigma_max",
		`{"kind":"vp","sigma_min":200}`:                              "must leave noise levels",
		`{"kind":"vp","beta_d":-1}`:                                  "beta_d",
		`{"kind":"vp","epsilon_t":1}`:                                "epsilon_t",
		`{"kind":"flow","shift":3}`:                                  `"shift"`,
		`{"kind":"flow"} {}`:                                         "text after",
		`[]`:                                                         "one JSON object",
		`{"kind":"flow","steps":"many"}`:                             "steps",
		`{"kind":"x0","alphas_cumprod":[0.9,0.5],"steps":1000}`:      "steps: is no field",
		`{"kind":"x0","alphas_cumprod":[0.9,0,0]}`:                   "got 1",
		`{"kind":"epsilon","alphas_cumprod":[0.9,0.5],"beta_min":1}`: "beta_min",
	} {
		_, err := parametrization.Parse([]byte(text))
		var config *nn.ConfigError
		if !errors.As(err, &config) || !strings.HasPrefix(config.Field, parametrization.Section) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a *nn.ConfigError with %q", text, err, want)
		}
	}
}

// TestJSON: a section is written as it was read, and two keys are one exactly where the graphs are.
func TestJSON(t *testing.T) {
	keys := map[string]string{}
	for name, c := range each() {
		p := of(t, c)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parametrization.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again.Key() != p.Key() {
			t.Errorf("%s: another key after JSON", name)
		}
		if other := keys[p.Key()]; other != "" {
			t.Errorf("%s and %s have one key", name, other)
		}
		keys[p.Key()] = name
	}
	if parametrization.OfEDM(0).Key() != of(t, parametrization.Config{Kind: "edm", SigmaData: 0.5}).Key() {
		t.Error("EDM's default has another key than σ_d = 0.5")
	}
}
