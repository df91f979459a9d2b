package passes

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// For x_0 ~ N(0, v I) the flow is −√g x/(v+g), so the residual has mean square d·v/(v+g), and F = d·v/((v+g) g (c+g)).

func TestEvaluateGaussian(t *testing.T) {
	const v, T = 0.04, 25.0
	b := basis.None(2, 2)
	net, d := gaussian(t, b, []float64{v}, 4096)
	m, w := onDevice(t, net, b)
	s := edm(t, T, 1e-6)
	set := EvaluateSettings{Points: 16, Samples: 256, C: 1, Seed: 5}
	rows, err := Evaluate(t.Context(), m, w, d, s, set)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 16 {
		t.Fatalf("%d rows", len(rows))
	}
	var sum float64
	for p, r := range rows {
		// The mean over the part of [0, T], as the rows report it.
		exact := quad.Fixed(func(u float64) float64 {
			g, _ := s.At(0, 0).Eval(u)
			return 4 * v / (v + g)
		}, T*float64(p)/16, T*float64(p+1)/16, 200, quad.Legendre{}, 0) * 16 / T
		if math.Abs(r.Residual-exact) > 4*r.Stderr {
			t.Errorf("part %d: residual %v ± %v, want %v", p, r.Residual, r.Stderr, exact)
		}
		if want := T * (float64(p) + 0.5) / 16; r.T != want || r.Label != -1 {
			t.Errorf("part %d: t %v, label %d", p, r.T, r.Label)
		}
		sum += r.Loss
	}
	energy := T * T * sum / 16
	f, err := schedule.NewDensity(exactDensity(4, v, 1, 1e-6, T, 400))
	if err != nil {
		t.Fatal(err)
	}
	exact, _ := schedule.Energy([]*schedule.Path{s.At(0, 0)}, []*schedule.Density{f})
	within(t, "energy", energy, exact, 0.05*exact)
	losses, err := Losses(t.Context(), m, w, d, s, LossSettings{Samples: 16 * 256, C: 1, Order: 1, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "mean loss of the same draws", Mean(losses), energy, 1e-6*energy)
	// Of order 2 each draw weighs T ġ/g times as much.
	steeper, err := Losses(t.Context(), m, w, d, s, LossSettings{Samples: 16 * 256, C: 1, Order: 2, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	meter := newMeter(m, w, d, nil, 5, 0, nil)
	for i, loss := range losses {
		g, dot := s.At(0, 0).Eval(meter.time(i, len(losses), T))
		within(t, "loss of order 2", steeper[i], loss*T*dot/g, 1e-6*steeper[i])
	}
}

func exactDensity(d int, v, c, g0, T float64, n int) []schedule.Sample {
	out := make([]schedule.Sample, n)
	for i := range out {
		g := g0 * math.Pow(T/g0, float64(i)/float64(n-1))
		out[i] = schedule.ResidualSample(math.Sqrt(g), float64(d)*v/(v+g), 0, c)
	}
	return out
}

// TestGeodesicGaussian compares the measured bound and path with those of the exact density.
func TestGeodesicGaussian(t *testing.T) {
	const v, T, g0 = 0.04, 25.0, 1e-6
	b := basis.None(2, 2)
	net, d := gaussian(t, b, []float64{v}, 4096)
	m, w := onDevice(t, net, b)
	var last int
	got, err := MakeGeodesic(t.Context(), m, w, d, GeodesicSettings{
		T: T, G0: g0, C: 1, Order: 1, Points: 100, Samples: 64, Seed: 1,
		Progress: func(done, total int) { last = total - done },
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 0 {
		t.Errorf("progress ends %d short", last)
	}
	path, want, err := schedule.Geodesic(exactDensity(4, v, 1, g0, T, 400), 1, T, g0, schedule.DefaultKnots)
	if err != nil {
		t.Fatal(err)
	}
	r := got.Reports[0]
	if math.Abs(r.Bound-want.Bound) > 4*r.BoundStderr || r.BoundStderr > 0.02*want.Bound {
		t.Errorf("bound %v ± %v, want %v", r.Bound, r.BoundStderr, want.Bound)
	}
	for _, part := range []float64{0.25, 0.5, 0.75} {
		a, _ := got.Schedule.At(0, 0).Eval(part * T)
		e, _ := path.Eval(part * T)
		within(t, "ln g of the path", math.Log(a), math.Log(e), 0.1)
	}
	if got.Schedule.Energy() == nil || got.Schedule.Theta() == nil {
		t.Error("the schedule carries no density or no parameters")
	}
}

// TestGeodesicOfSubspaces: each subspace has the path of its own density, which is known, and the energies add up.
func TestGeodesicOfSubspaces(t *testing.T) {
	b, err := basis.DCT(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	net, d := gaussian(t, b, []float64{0.04, 0.004}, 1024)
	m, w := onDevice(t, net, b)
	g, err := MakeGeodesic(t.Context(), m, w, d, GeodesicSettings{
		T: predictT, G0: predictG0, C: 1, Order: 1, Knots: 64, Samples: 64, Family: schedule.Family{Basis: "dct", K: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	bound := exactEnergy(t, []float64{0.04}) + exactEnergy(t, []float64{0.004, 0.004, 0.004})
	within(t, "bound", g.Reports[0].Bound, bound, 4*g.Reports[0].BoundStderr)
	if e := g.Reports[0].Energy; e < g.Reports[0].Bound || e > 1.05*g.Reports[0].Bound {
		t.Errorf("energy %v of the bound %v", e, g.Reports[0].Bound)
	}
	if s := g.Schedule; s.J() != 2 || len(s.Energy()[0]) != 2 {
		t.Errorf("%d subspaces, densities %v", s.J(), s.Energy())
	}
}

// TestEvaluationsArePaired: evaluations of two near schedules differ by far less than either is uncertain.
func TestEvaluationsArePaired(t *testing.T) {
	net, d := gaussian(t, basis.None(2, 2), []float64{0.04}, 512)
	m, w := onDevice(t, net, basis.None(2, 2))
	var rows [2][]EvaluationRow
	for i, knots := range []int{16, 17} {
		s := schedule.Isotropic(schedule.EDMTheta(knots, 25, 1e-6).Path(25, 1e-6))
		var err error
		if rows[i], err = Evaluate(t.Context(), m, w, d, s, EvaluateSettings{Points: 8, Samples: 64}); err != nil {
			t.Fatal(err)
		}
	}
	for p, row := range rows[0] {
		if paired := math.Abs(row.Residual - rows[1][p].Residual); paired > 0.3*row.Stderr {
			t.Errorf("part %d: a difference of %v, standard error %v", p, paired, row.Stderr)
		}
	}
}

func TestMeans(t *testing.T) {
	x := []float64{1, 3, 2, 6}
	mean, stderr := MeanStderr(x)
	if mean != 3 || Mean(x) != 3 || math.Abs(stderr-math.Sqrt(14.0/3/4)) > 1e-15 {
		t.Errorf("%v ± %v", mean, stderr)
	}
	if mean, stderr := MeanStderr(x[:1]); mean != 1 || stderr != 0 {
		t.Errorf("of one: %v ± %v", mean, stderr)
	}
}
