package parametrization_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
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
	levels := []float64{1e-3, 0.03, 0.5, 1, 14.6, 80, 3000}
	g := make([]float64, len(levels))
	for i, sigma := range levels {
		g[i] = sigma * sigma
	}
	for name, c := range each() {
		p := of(t, c)
		v := run(t, dtypes.Float64, g, name, func(g *graph.Node) []*graph.Node { return coefficients(p, g) })
		for i, sigma := range levels {
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
			near(t, name+" input", v[0][i], in, 1e-13)
			near(t, name+" denoised", v[3][i]*x+sigma*v[2][i]*f, d, 1e-12)
			near(t, name+" flow", sigma*(v[1][i]*x+v[2][i]*f), d-x, 1e-9)
			near(t, name+" in √g", v[4][i], in*sigma, 1e-13)
		}
	}
}

// coefficients appends in, skip, out, keep and in √g.
func coefficients(p *parametrization.Parametrization, g *graph.Node) []*graph.Node {
	c := p.Coefficients(g)
	return []*graph.Node{c.In, c.Skip, c.Out, c.Keep, c.Mix}
}

// TestLabels: noise labels as published.
func TestLabels(t *testing.T) {
	all := each()
	a := all["epsilon"].AlphasCumprod
	level := func(a float64) float64 { return math.Sqrt((1 - a) / a) }
	vp := func(u float64) float64 { return math.Sqrt(math.Expm1(0.5*19.9*u*u + 0.1*u)) }
	all["own labels"] = parametrization.Config{
		Kind: parametrization.Epsilon, AlphasCumprod: []float64{0.9, 0.5}, Timesteps: []float64{7, 3},
	}
	for name, c := range map[string]struct{ sigma, want []float64 }{
		"edm":     {[]float64{3}, []float64{math.Log(3) / 4}},
		"ve":      {[]float64{3}, []float64{math.Log(1.5)}},
		"flow":    {[]float64{3}, []float64{750}},
		"to data": {[]float64{3}, []float64{0.25}},
		"vp":      {[]float64{vp(1e-5), vp(0.01), vp(0.5), vp(1)}, []float64{999e-5, 9.99, 499.5, 999}},
		"epsilon": { // at knots, halfway in ln σ, and outside the table
			[]float64{level(a[0]), level(a[7]), level(a[999]), math.Sqrt(level(a[3]) * level(a[4])), 1e-9, 1e9},
			[]float64{0, 7, 999, 3.5, 0, 999},
		},
		"own labels": {[]float64{1, 1e-9}, []float64{3, 7}},
	} {
		p := of(t, all[name])
		logs := make([]float64, len(c.sigma))
		for i, sigma := range c.sigma {
			logs[i] = math.Log(sigma)
		}
		got := run(t, dtypes.Float64, logs, name, func(l *graph.Node) []*graph.Node { return []*graph.Node{p.Noise(l)} })[0]
		for i, want := range c.want {
			if !(math.Abs(got[i]-want) <= 1e-9*math.Max(1, want)) {
				t.Errorf("%s at σ = %g: label %.15g, want %.15g", name, c.sigma[i], got[i], want)
			}
		}
	}
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

// run runs a graph on one vector, which is rounded to the type.
func run(t *testing.T, dtype dtypes.DType, values []float64, key string, build func(x *graph.Node) []*graph.Node,
) [][]float64 {
	t.Helper()
	autodiff.Install()
	return devicetest.Compute(t, devicetest.Fast(t), key+dtype.String(),
		func(in []*graph.Node) []*graph.Node { return build(in[0]) }, devicetest.In(dtype, values, len(values)))
}

// TestDerivatives: those of the coefficients by g and of the label by ln σ agree with central differences in float64,
// and in float32 with float64 to a few units in the last place wherever the derivative is not a difference itself.
func TestDerivatives(t *testing.T) {
	sigmas := []float64{3.2e-5, 0.002, 0.03, 0.31, 0.5, 1.02, 3.7, 14.6, 80, 990}
	var g, logs []float64 // each level, then twice and once a step below and above it
	steps := []float64{0, -2, -1, 1, 2}
	const h, hLog = 1e-4, 1e-5 // relative to g; within every piece of the tables
	for _, s := range sigmas {
		level, log := float64(float32(s*s)), float64(float32(math.Log(s)))
		for _, k := range steps {
			g, logs = append(g, level*(1+k*h)), append(logs, log+k*hLog)
		}
	}
	differentiated := func(values []*graph.Node, by *graph.Node) []*graph.Node {
		for _, v := range values[:len(values):len(values)] {
			values = append(values, graph.Gradient(graph.ReduceAllSum(v), by)[0])
		}
		return values
	}
	slope := func(v []float64, h float64) float64 { return (v[1] - 8*v[2] + 8*v[3] - v[4]) / (12 * h) }
	for name, c := range each() {
		p := of(t, c)
		build := func(g *graph.Node) []*graph.Node { return differentiated(coefficients(p, g), g) }
		wide, narrow := run(t, dtypes.Float64, g, name, build), run(t, dtypes.Float32, g, name, build)
		for k, what := range []string{"in", "skip", "out", "keep", "in √g"} {
			for i := 0; i < len(g); i += len(steps) {
				value, got := wide[k][i], wide[5+k][i]
				near(t, name+" float32 "+what, narrow[k][i], value, 1e-6)
				want := slope(wide[k][i:], h*g[i])
				if !(math.Abs(got-want) <= 1e-9*math.Max(math.Abs(want), math.Abs(value/g[i]))) {
					t.Errorf("%s %s' at g = %g: %g, want %g", name, what, g[i], got, want)
				}
				scale := math.Abs(got)
				if what == "skip" { // changes sign
					scale = math.Max(scale, math.Abs(value/g[i]))
				}
				if !(math.Abs(narrow[5+k][i]-got) <= 2e-6*scale) {
					t.Errorf("%s %s' at g = %g in float32: %g, want %g", name, what, g[i], narrow[5+k][i], got)
				}
			}
		}
		label := func(l *graph.Node) []*graph.Node { return differentiated([]*graph.Node{p.Noise(l)}, l) }
		wide = run(t, dtypes.Float64, logs, name+" label", label)
		narrow = run(t, dtypes.Float32, logs, name+" label", label)
		for i := 0; i < len(logs); i += len(steps) {
			value, want := wide[0][i], slope(wide[0][i:], hLog)
			scale := math.Max(math.Abs(value), 1)
			if !(math.Abs(wide[1][i]-want) <= 1e-6*math.Max(math.Abs(want), scale)) {
				t.Errorf("%s label' at %g: %g, want %g", name, logs[i], wide[1][i], want)
			}
			if !(math.Abs(narrow[0][i]-value) <= 1e-5*scale) {
				t.Errorf("%s label at %g in float32: %g, want %g", name, logs[i], narrow[0][i], value)
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
		`{"kind":"flow","shift":3}`:                                  "shift: unknown field",
		`{"kind":"flow"} {}`:                                         "after top-level value",
		`[]`:                                                         "one JSON object",
		`{"kind":"flow","steps":"many"}`:                             "steps",
		`{"kind":"x0","alphas_cumprod":[0.9,0.5],"steps":1000}`:      "steps: is no field",
		`{"kind":"x0","alphas_cumprod":[0.9,0,0]}`:                   "got 1",
		`{"kind":"epsilon","alphas_cumprod":[0.9,0.5],"beta_min":1}`: "beta_min",
	} {
		err := new(parametrization.Parametrization).UnmarshalJSON([]byte(text))
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
		again := new(parametrization.Parametrization)
		if err := json.Unmarshal(text, again); err != nil {
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
