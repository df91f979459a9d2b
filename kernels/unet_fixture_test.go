package kernels_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// fixtureNet is the fixtures' DDPM++ network: 3×16×16 images, ten classes.
func fixtureNet(t *testing.T) (net kernels.RawNetwork, params []string, values [][]float32) {
	t.Helper()
	c := fixtures.Load(t, "networks/ddpmpp")
	n, err := unet.Parse(c.Raw("config"))
	if err != nil {
		t.Fatal(err)
	}
	var state []nn.Tensor
	for _, w := range c.File("weights.safetensors").Tensors {
		v, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		state = append(state, nn.Tensor{Name: w.Name, Shape: w.Shape, Data: v})
	}
	if values, err = n.Load(state); err != nil {
		t.Fatal(err)
	}
	for _, p := range n.Params() {
		params = append(params, p.Name)
	}
	return n, params, values
}

// fixtureBasis returns a basis of the fixtures: none, dct, or as "pca per class" the stored vectors of pca given to
// every class by itself.
func fixtureBasis(t *testing.T, name string) *basis.Basis {
	t.Helper()
	var b *basis.Basis
	var err error
	switch name {
	case "none":
		b = basis.None(16, 16)
	case "dct":
		b, err = basis.DCT(16, 16, 0)
	case "pca per class":
		v := map[int][][]float64{}
		for label := range 10 {
			v[label] = rows(fixtures.Load(t, "bases").F64("pca"), 64)
		}
		b, err = basis.Dense(16, 16, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unetModel is that network with a basis, at the precision of a release. The tests share it, and so the programs that
// are compiled for it: a minute for some. It stays until the process ends.
func unetModel(t *testing.T, name string) (m *kernels.Model, w *kernels.Weights, params []string) {
	t.Helper()
	unetModels.Lock()
	defer unetModels.Unlock()
	made, ok := unetModels.on[name]
	if !ok {
		net, params, values := fixtureNet(t)
		made.params = params
		var err error
		if made.m, err = kernels.NewModelAt(kernels.Float32, devicetest.Open(t), net, fixtureBasis(t, name)); err != nil {
			t.Fatal(err)
		}
		if made.w, err = made.m.Upload(values); err != nil {
			t.Fatal(err)
		}
		unetModels.on[name] = made
	}
	return made.m, made.w, made.params
}

var unetModels = struct {
	sync.Mutex
	on map[string]unetFixture // by the basis
}{on: map[string]unetFixture{}}

type unetFixture struct {
	m      *kernels.Model
	w      *kernels.Weights
	params []string
}

// image returns a stored [B, 3, 16, 16] tensor in the device's order.
func image(c *fixtures.Case, name string) []float64 {
	v := c.F64(name)
	return fixtures.NHWC(v, len(v)/768, 3, 16, 16)
}

func image32(c *fixtures.Case, name string) []float32 {
	v := c.F32(name)
	return fixtures.NHWC(v, len(v)/768, 3, 16, 16)
}

// labelsOf reads classes off the stored one-hot vectors.
func labelsOf(c *fixtures.Case) []int32 {
	v := c.F64("class_labels")
	out := make([]int32, len(v)/10)
	for i := range out {
		out[i] = -1
		for k := range 10 {
			if v[i*10+k] == 1 {
				out[i] = int32(k)
			}
		}
	}
	return out
}

// bounds are the tolerances that a case recommends for float32.
type bounds map[string]struct {
	Recommended struct {
		fixtures.Tolerance
		Entrywise float64 `json:"entrywise_rel_max"`
	} `json:"recommended"`
}

func boundsOf(t *testing.T, c *fixtures.Case, under string) bounds {
	t.Helper()
	var b bounds
	if under == "" {
		c.JSON("tolerances", &b)
		return b
	}
	var all map[string]json.RawMessage
	c.JSON("tolerances", &all)
	if err := json.Unmarshal(all[under], &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// check compares with the tolerance of that name and, where the case has one, entry by entry.
func (b bounds) check(t *testing.T, what, name string, got, want []float64) {
	t.Helper()
	tol, ok := b[name]
	if !ok {
		t.Fatalf("%s: no tolerance %q", what, name)
	}
	t.Logf("%-28s rel_max %.2e of %.1e, rel_l2 %.2e of %.1e", what,
		fixtures.RelMax(got, want), tol.Recommended.RelMax, fixtures.RelL2(got, want), tol.Recommended.RelL2)
	fixtures.Check(t, what, got, want, tol.Recommended.Tolerance)
	if tol.Recommended.Entrywise == 0 {
		return
	}
	for i := range want {
		if d := (got[i] - want[i]) / want[i]; !(d <= tol.Recommended.Entrywise && -d <= tol.Recommended.Entrywise) {
			t.Errorf("%s: entry %d is %g, want %g within %g", what, i, got[i], want[i], tol.Recommended.Entrywise)
		}
	}
}

// TestPreconditioning compares the network's output, the denoiser and the flow at unequal variances with the fixtures,
// for a separable and for dense bases.
func TestPreconditioning(t *testing.T) {
	t.Parallel() // programs compile side by side
	c := fixtures.Load(t, "aniso/wrap")
	g := interleave(c.F64("g"), c.F64("h"))
	for _, name := range []string{"dct", "pca per class"} {
		t.Run(name, func(t *testing.T) {
			stored := name[:3]
			m, w, _ := unetModel(t, name)
			d, flow, raw, err := m.Denoise(context.Background(), w, image32(c, stored+"_x"), g, labelsOf(c))
			if err != nil {
				t.Fatal(err)
			}
			tol := boundsOf(t, c, stored)
			tol.check(t, "F", "F", fixtures.Widen(raw), image(c, stored+"_F"))
			tol.check(t, "D", "D", fixtures.Widen(d), image(c, stored+"_D"))
			tol.check(t, "flow", "flow", fixtures.Widen(flow), image(c, stored+"_flow"))
		})
	}
}

// TestEstimatorFixture compares every term of the estimator, A, B, the gradient by θ and the gradient of every
// parameter, for one schedule and one per class.
func TestEstimatorFixture(t *testing.T) {
	t.Parallel()
	m, w, params := unetModel(t, "dct")
	for _, name := range []string{"estimator/gh_dct", "estimator/gh_dct_per_class"} {
		c := fixtures.Load(t, name)
		var T, g0 float64
		c.JSON("T", &T)
		c.JSON("g0", &g0)
		g, gdot := interleave(c.F64("g"), c.F64("h")), interleave(c.F64("gdot"), c.F64("hdot"))
		in := kernels.EstimateInput64{
			X0: image(c, "x0"), Eps: image(c, "eps"), Probe: image(c, "z"), G: g,
			Labels: labelsOf(c),
		}
		dtheta := func(a, b []float64) []float64 {
			shape := c.Shape("theta_g")
			row, at := c.I64("schedule_row"), c.F64("t")
			out := chain(rows(c.F64("theta_g"), shape[0]), row, T, g0, at, column(a, 0, 2), column(b, 0, 2))
			return append(out, chain(rows(c.F64("theta_h"), shape[0]), row, T, g0, at, column(a, 1, 2), column(b, 1, 2))...)
		}
		for weight, key := range map[float64]string{1: "c1", 0.5: "c05"} {
			t.Run(fmt.Sprintf("%s/%s", name, key), func(t *testing.T) {
				in := in
				in.Omega = omegas(g, gdot, weight)
				tol := boundsOf(t, c, key)
				in.Mode = kernels.Auto
				full := estimateFive(t, m, w, in)
				if full.Mode != kernels.Full {
					t.Errorf("auto resolved to %s for a network that does not see the ratio", full.Mode)
				}
				parts := map[string][]float64{
					"explicit_W": explicitWeight(full, g, gdot, weight), "explicit_x": full.ExplicitX,
					"implicit_1": full.Implicit1, "implicit_2": full.Implicit2, "implicit_3": full.Implicit3,
				}
				// The case states no tolerance for single terms; they are bounded by that of a and h, from which they are made.
				for part, got := range parts {
					tol.check(t, part, "h", got, c.F64(key+"_A_"+part))
				}
				loss, a, b := full.Assemble(g, gdot, weight)
				tol.check(t, "loss", "loss", loss, c.F64(key+"_loss"))
				tol.check(t, "A", "A_full", a, c.F64(key+"_A_full"))
				tol.check(t, "B", "B", b, c.F64(key+"_B"))
				tol.check(t, "dtheta", "dtheta_full", dtheta(a, b), c.F64(key+"_dtheta_full"))

				explicit := kernels.Terms{Mode: kernels.Explicit, J: 2, Residual: full.Residual, ExplicitX: full.ExplicitX}
				_, a, b = explicit.Assemble(g, gdot, weight)
				tol.check(t, "A explicit", "A_explicit", a, c.F64(key+"_A_explicit"))
				tol.check(t, "dtheta explicit", "dtheta_explicit", dtheta(a, b), c.F64(key+"_dtheta_explicit"))
			})
		}
		in.Omega = omegas(g, gdot, 1)
		checkParameterGradient(t, name, c, m, w, params, in)
	}
}

// estimateFive estimates cases of four samples as five, so that all cases share one compiled program.
func estimateFive(t *testing.T, m *kernels.Model, w *kernels.Weights, in kernels.EstimateInput64) *kernels.Terms {
	t.Helper()
	n := len(in.Labels)
	terms := estimate64(t, m, w, lengthened(in, 5))
	for _, part := range []*[]float64{
		&terms.Residual, &terms.ExplicitX, &terms.Implicit1, &terms.Implicit2,
		&terms.Implicit3, &terms.Backprop,
	} {
		if *part != nil {
			*part = (*part)[:n*m.J()]
		}
	}
	return terms
}

// lengthened repeats the first sample, without weight, until there are n.
func lengthened(in kernels.EstimateInput64, n int) kernels.EstimateInput64 {
	old := len(in.Labels)
	longer := func(x []float64) []float64 {
		per := len(x) / old
		out := slices.Clone(x)
		for range n - old {
			out = append(out, x[:per]...)
		}
		return out
	}
	in.X0, in.Eps, in.Probe, in.G = longer(in.X0), longer(in.Eps), longer(in.Probe), longer(in.G)
	in.Omega = append(slices.Clone(in.Omega), make([]float64, len(in.G)-len(in.Omega))...)
	in.Labels = append(slices.Clone(in.Labels), make([]int32, n-old)...)
	return in
}

// checkParameterGradient compares stored entries of the gradient of every parameter.
func checkParameterGradient(t *testing.T, name string, c *fixtures.Case, m *kernels.Model, w *kernels.Weights,
	params []string, in kernels.EstimateInput64,
) {
	t.Helper()
	grads, err := m.ParameterGradient(w, lengthened(in, 5))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string][]float32{}
	for i, p := range params {
		byName[p] = grads[i]
	}
	var names []string
	c.JSON("param_names", &names)
	index, want := c.I64("phi_grad_index"), c.F64("phi_grad_sample")
	per := len(index) / len(names)
	got := make([]float64, len(want))
	for i, p := range names {
		if byName[p] == nil {
			t.Fatalf("%s: no gradient of %s", name, p)
		}
		for k := i * per; k < (i+1)*per; k++ {
			got[k] = float64(byName[p][index[k]])
		}
	}
	// Ten times what an independent float32 run measured.
	t.Logf("%s phi: rel_max %.2e, rel_l2 %.2e", name, fixtures.RelMax(got, want), fixtures.RelL2(got, want))
	fixtures.Check(t, name+" phi", got, want, fixtures.Tolerance{RelMax: 3e-5, RelL2: 3e-5})
}
