package kernels_test

import (
	"context"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// mixtureCase is the fixtures' analytic mixture of three Gaussians with full covariances in 16 dimensions, noise in two
// subspaces.
type mixtureCase struct {
	*fixtures.Case
	m       *kernels.Model
	w       *kernels.Weights
	T, g0   float64
	g, gdot []float64
	input   kernels.EstimateInput64
}

func loadMixture(t *testing.T) *mixtureCase {
	t.Helper()
	c := &mixtureCase{Case: fixtures.Load(t, "estimator/mixture")}
	c.JSON("T", &c.T)
	c.JSON("g0", &c.g0)
	b, err := basis.Dense(4, 4, map[int][][]float64{basis.Shared: rows(c.F64("V"), 4)})
	if err != nil {
		t.Fatal(err)
	}
	mix, err := mixturetest.New(mixturetest.Settings{
		Height: 4, Width: 4, Channels: 1,
		Weights: c.F64("pi"), Means: rows(c.F64("mu"), 3), Covs: rows(c.F64("cov"), 3),
	}, b)
	if err != nil {
		t.Fatal(err)
	}
	c.m, c.w = model64(t, mix, b, nil)
	c.g, c.gdot = interleave(c.F64("g"), c.F64("h")), interleave(c.F64("gdot"), c.F64("hdot"))
	c.input = kernels.EstimateInput64{X0: c.F64("x0"), Eps: c.F64("eps"), Probe: c.F64("z"), G: c.g}
	return c
}

func (c *mixtureCase) dtheta(a, b []float64) []float64 {
	row := make([]int64, len(a)/2)
	t := c.F64("t")
	g := chain(rows(c.F64("theta_g"), 1), row, c.T, c.g0, t, column(a, 0, 2), column(b, 0, 2))
	return append(g, chain(rows(c.F64("theta_h"), 1), row, c.T, c.g0, t, column(a, 1, 2), column(b, 1, 2))...)
}

// TestMixtureFixture compares the flow, every term of the estimator and the gradient by θ with values from an
// independent implementation in float64, and the gradient with an exact trace with finite differences of the loss.
func TestMixtureFixture(t *testing.T) {
	t.Parallel()
	c := loadMixture(t)
	_, flow, _, err := c.m.Denoise64(context.Background(), c.w, c.F64("c1_x_t"), c.g, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "flow", flow, c.F64("c1_flow"), 1e-9)
	for name, weight := range map[string]float64{"c1": 1, "c05": 0.5} {
		in := c.input
		in.Omega = omegas(c.g, c.gdot, weight)
		in.Mode = kernels.Full
		full := estimate64(t, c.m, c.w, in)
		expect(t, name+" explicit W", explicitWeight(full, c.g, c.gdot, weight), c.F64(name+"_A_explicit_W"), 1e-9)
		expect(t, name+" explicit x", full.ExplicitX, c.F64(name+"_A_explicit_x"), 1e-9)
		expect(t, name+" implicit 1", full.Implicit1, c.F64(name+"_A_implicit_1"), 1e-9)
		expect(t, name+" implicit 2", full.Implicit2, c.F64(name+"_A_implicit_2"), 1e-9)
		expect(t, name+" implicit 3", full.Implicit3, c.F64(name+"_A_implicit_3"), 1e-9)
		loss, a, b := full.Assemble(c.g, c.gdot, weight)
		expect(t, name+" loss", loss, c.F64(name+"_loss"), 1e-9)
		expect(t, name+" A", a, c.F64(name+"_A_full"), 1e-9)
		expect(t, name+" B", b, c.F64(name+"_B"), 1e-9)
		expect(t, name+" dtheta", c.dtheta(a, b), c.F64(name+"_dtheta_full"), 1e-9)

		exact := c.exactTrace(t, full, in)
		_, a, b = exact.Assemble(c.g, c.gdot, weight)
		expect(t, name+" A, exact trace", a, c.F64(name+"_A_full_exact_trace"), 1e-9)
		expect(t, name+" dtheta, exact trace", c.dtheta(a, b), c.F64(name+"_dtheta_full_exact_trace"), 1e-9)
		expect(t, name+" dtheta, exact trace, against finite differences", c.dtheta(a, b),
			c.F64(name+"_dtheta_finite_difference"), 1e-6)

		in.Mode = kernels.Explicit
		_, a, b = estimate64(t, c.m, c.w, in).Assemble(c.g, c.gdot, weight)
		expect(t, name+" A, explicit", a, c.F64(name+"_A_explicit"), 1e-9)
		expect(t, name+" dtheta, explicit", c.dtheta(a, b), c.F64(name+"_dtheta_explicit"), 1e-9)

		// The network is a function of all of g, so differentiating through it is the same number as the implicit terms with
		// an exact trace.
		in.Mode = kernels.Auto
		auto := estimate64(t, c.m, c.w, in)
		if auto.Mode != kernels.Backprop {
			t.Errorf("auto resolved to %s for a network that sees all of g", auto.Mode)
		}
		_, a, b = auto.Assemble(c.g, c.gdot, weight)
		expect(t, name+" dtheta, backprop", c.dtheta(a, b), c.F64(name+"_dtheta_finite_difference"), 1e-6)
	}
}

// exactTrace replaces the probe by the average over the d probes √d e_i.
func (c *mixtureCase) exactTrace(t *testing.T, full *kernels.Terms, in kernels.EstimateInput64) *kernels.Terms {
	t.Helper()
	d := c.m.Pixels()
	n := len(in.X0) / d
	sum := make([]float64, len(full.Implicit1))
	for i := range d {
		in.Probe = make([]float64, n*d)
		for b := range n {
			in.Probe[b*d+i] = math.Sqrt(float64(d))
		}
		for k, v := range estimate64(t, c.m, c.w, in).Implicit1 {
			sum[k] += v / float64(d)
		}
	}
	exact := *full
	exact.Implicit1 = sum
	return &exact
}
