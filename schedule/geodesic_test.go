package schedule

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
)

// gaussianDensity samples the energy density of centred Gaussian data with variance s in one dimension: the best flow
// leaves the residual Var(ε | x) = s/(s + g), so
//
//	F(g) = s/((s + g) g (c + g)).
func gaussianDensity(s, c float64, n int, lo, hi float64) []Sample {
	out := make([]Sample, n)
	for i := range out {
		sigma := lo * math.Pow(hi/lo, float64(i)/float64(n-1))
		g := sigma * sigma
		out[i] = ResidualSample(sigma, s/(s+g), 0, c)
	}
	return out
}

func density(t *testing.T, samples []Sample) *Density {
	t.Helper()
	d, err := NewDensity(samples)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// For unit Gaussian data and c = 1, √F = g^{−1/2}/(1 + g): the length is 2 atan √g, so the geodesic is the cosine
// schedule, g = tan², and the bound is known.
func TestGeodesicOfAGaussianIsTheCosineSchedule(t *testing.T) {
	const T, g0, knots = 6400.0, 1e-9, 32
	p, r, err := Geodesic(gaussianDensity(1, 1, 2000, 1e-5, 100), 1, T, g0, knots)
	if err != nil {
		t.Fatal(err)
	}
	bound := math.Pow(2*(math.Atan(80)-math.Atan(math.Sqrt(g0))), 2)
	if math.Abs(r.Bound/bound-1) > 1e-5 {
		t.Errorf("bound %v, want %v", r.Bound, bound)
	}
	_, want := CosineTheta(knots, T, g0).Path(T, g0).Knots()
	_, got := p.Knots()
	for k := range want {
		if math.Abs(got[k]-want[k]) > 1e-4 {
			t.Errorf("ln g at knot %d: %v, want %v", k, got[k], want[k])
		}
	}
	if p.G0() != g0 || p.GT() != T {
		t.Errorf("ends at %v and %v", p.G0(), p.GT())
	}
	// Its energy exceeds the bound by the price of 32 knots alone, and tends to it.
	if !(r.Energy > r.Bound && r.Energy < 1.15*r.Bound) {
		t.Errorf("energy %v, bound %v", r.Energy, r.Bound)
	}
	_, fine, err := Geodesic(gaussianDensity(1, 1, 2000, 1e-5, 100), 1, T, g0, 500)
	if err != nil {
		t.Fatal(err)
	}
	if !(fine.Energy > fine.Bound && fine.Energy < 1.005*fine.Bound) {
		t.Errorf("on 500 knots: energy %v, bound %v", fine.Energy, fine.Bound)
	}
}

// For F = 1/g the path of order p has EDM's form with ρ = (p + 1)/2: σ^{1/ρ} is linear in t.
func TestGeodesicOfAnOrder(t *testing.T) {
	const T, g0, knots = 6400.0, 1e-6, 33
	samples := []Sample{{Sigma: 1e-3, F: 1e6}, {Sigma: 1, F: 1}, {Sigma: 80, F: 1.0 / 6400}}
	for order := 1; order <= 13; order++ {
		p, r, err := Geodesic(samples, order, T, g0, knots)
		if err != nil {
			t.Fatal(err)
		}
		power := 1 / float64(order+1) // of g
		low, high := math.Pow(g0, power), math.Pow(T, power)
		_, got := p.Knots()
		for k := range got {
			if want := math.Log(low+(high-low)*float64(k)/(knots-1)) / power; math.Abs(got[k]-want) > 1e-9 {
				t.Errorf("order %d: ln g at knot %d: %v, want %v", order, k, got[k], want)
			}
		}
		if order > 1 && r.Energy < 1.05*r.Bound {
			t.Errorf("order %d: energy %v, bound %v", order, r.Energy, r.Bound)
		}
	}
}

// The energy is T² times the mean loss: here the loss of a Gaussian in closed form, averaged over t by quadrature.
func TestEnergyIsTheMeanLoss(t *testing.T) {
	const T, g0, s, c = 100.0, 1e-6, 0.3, 0.7
	d := density(t, gaussianDensity(s, c, 3000, 1e-3, 20))
	for _, th := range []Theta{LogLinearTheta(6, T, g0), EDMTheta(12, T, g0), {1, -2, 0.5, 3}} {
		p := th.Path(T, g0)
		var loss float64
		tau, _ := p.Knots()
		for k := 1; k < len(tau); k++ {
			loss += quad.Fixed(func(at float64) float64 {
				g, gdot := p.Eval(at)
				return Omega(g, gdot, c) * s / (s + g) / T
			}, tau[k-1], tau[k], 80, nil, 0)
		}
		if got, _ := Energy([]*Path{p}, []*Density{d}); math.Abs(got/(T*T*loss)-1) > 1e-4 {
			t.Errorf("energy %v, T²·loss %v", got, T*T*loss)
		}
	}
}

// Energy and length are integrals of the density as At gives it, exactly.
func TestIntegralsOfADensity(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var samples []Sample
	for i := range 12 {
		s := math.Exp(float64(i) - 6 + 0.5*rng.Float64())
		samples = append(samples, Sample{Sigma: s, F: math.Exp(-2*math.Log(s) + rng.NormFloat64())})
	}
	d := density(t, samples)
	integral := func(lo, hi float64, f func(g float64) float64) float64 {
		edges := []float64{lo}
		for _, s := range d.samples {
			if l := 2 * math.Log(s.Sigma); l > lo && l < hi {
				edges = append(edges, l)
			}
		}
		edges = append(edges, hi)
		var sum float64
		for i := 1; i < len(edges); i++ {
			sum += quad.Fixed(func(l float64) float64 { return f(math.Exp(l)) * math.Exp(l) }, edges[i-1], edges[i], 60, nil, 0)
		}
		return sum
	}
	for range 20 {
		lo := -16 + 10*rng.Float64()
		hi := lo + 20*rng.Float64() // beyond the samples on both sides now and then
		length := integral(lo, hi, func(g float64) float64 { return math.Sqrt(d.At(g)) })
		if got := d.length(1, lo, hi); math.Abs(got/length-1) > 1e-10 {
			t.Errorf("length %v, want %v", got, length)
		}
		energy := integral(lo, hi, func(g float64) float64 { return g * d.At(g) })
		if got := d.moment(1, 1, lo, hi); math.Abs(got/energy-1) > 1e-10 {
			t.Errorf("∫ g F dg = %v, want %v", got, energy)
		}
		if got := d.travel(1, lo, length); math.Abs(got-hi) > 1e-9 {
			t.Errorf("travelled to %v, want %v", got, hi)
		}
	}
}

// The limits beyond the samples, where F of any data goes.
func TestDensityBeyondSamples(t *testing.T) {
	d := density(t, gaussianDensity(1, 1, 50, 0.01, 30))
	for _, q := range []struct{ sigma, tol float64 }{{1e-5, 1e-3}, {0.01, 1e-12}, {30, 1e-12}, {1000, 1e-2}} {
		g := q.sigma * q.sigma
		if want := 1 / ((1 + g) * g * (1 + g)); math.Abs(d.At(g)/want-1) > q.tol {
			t.Errorf("F at σ = %v: %v, want %v", q.sigma, d.At(g), want)
		}
	}
}

// No path beats the bound.
func TestBoundIsABound(t *testing.T) {
	const T, g0 = 400.0, 1e-6
	d := density(t, gaussianDensity(0.25, 1, 300, 1e-3, 20))
	bound, _ := Bound([]*Density{d}, g0, T)
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		if e, _ := Energy([]*Path{randomTheta(rng, 1+rng.IntN(20), 2).Path(T, g0)}, []*Density{d}); e < bound {
			t.Errorf("energy %v below the bound %v", e, bound)
		}
	}
	// Two subspaces add.
	two, _ := Bound([]*Density{d, d}, g0, T)
	if math.Abs(two/bound-2) > 1e-12 {
		t.Errorf("two equal subspaces: bound %v, one: %v", two, bound)
	}
	p := EDMTheta(8, T, g0).Path(T, g0)
	one, _ := Energy([]*Path{p}, []*Density{d})
	sum, _ := Energy([]*Path{p, p}, []*Density{d, d})
	if math.Abs(sum/one-2) > 1e-12 {
		t.Errorf("two equal subspaces: energy %v, one: %v", sum, one)
	}
}

// The stated errors are the spread of the results under fresh measurements.
func TestStandardErrors(t *testing.T) {
	const T, g0 = 400.0, 1e-6
	samples := gaussianDensity(0.25, 1, 40, 1e-3, 20)
	for i := range samples {
		samples[i].Stderr = 0.02 * samples[i].F
	}
	p, r, err := Geodesic(samples, 1, T, g0, 16)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	const n = 400
	var b, b2, e, e2 float64
	for range n {
		again := append([]Sample(nil), samples...)
		for i := range again {
			again[i].F += again[i].Stderr * rng.NormFloat64()
		}
		d := []*Density{density(t, again)}
		bound, _ := Bound(d, g0, T)
		energy, _ := Energy([]*Path{p}, d)
		b, b2, e, e2 = b+bound/n, b2+bound*bound/n, e+energy/n, e2+energy*energy/n
	}
	for _, q := range []struct {
		what         string
		stated, seen float64
	}{{"bound", r.BoundStderr, math.Sqrt(b2 - b*b)}, {"energy", r.EnergyStderr, math.Sqrt(e2 - e*e)}} {
		if math.Abs(q.stated/q.seen-1) > 0.1 {
			t.Errorf("%s: stated error %v, spread %v", q.what, q.stated, q.seen)
		}
	}
}

func TestDensityRefuses(t *testing.T) {
	ok := Sample{Sigma: 1, F: 1}
	for _, q := range []struct {
		name    string
		samples []Sample
		row     int
		says    string
	}{
		{"one sample", []Sample{ok}, -1, "two samples"},
		{"twice", []Sample{ok, {Sigma: 2, F: 1}, ok}, -1, "got 1 twice"},
		{"zero level", []Sample{ok, {Sigma: 0, F: 1}}, 1, "sigma must be"},
		{"negative F", []Sample{ok, {Sigma: 2, F: -1}}, 1, "energy density"},
		{"NaN F", []Sample{ok, {Sigma: 2, F: math.NaN()}}, 1, "energy density"},
		{"infinite F", []Sample{{Sigma: 2, F: math.Inf(1)}, ok}, 0, "energy density"},
		{"negative error", []Sample{ok, {Sigma: 2, F: 1, Stderr: -1}}, 1, "standard error"},
	} {
		t.Run(q.name, func(t *testing.T) {
			_, _, err := Geodesic(q.samples, 1, 100, 0.01, 8)
			var bad *Error
			if !errors.As(err, &bad) || bad.Row != q.row || !strings.Contains(bad.Msg, q.says) {
				t.Errorf("%v; want row %d and %q", err, q.row, q.says)
			}
		})
	}
	two := []Sample{ok, {Sigma: 2, F: 1}}
	for name, q := range map[string]struct {
		order int
		g0    float64
		knots int
	}{"g0 above T": {1, 3, 8}, "one knot": {1, 1, 1}, "order 0": {0, 1, 8}} {
		if _, _, err := Geodesic(two, q.order, 2, q.g0, q.knots); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
