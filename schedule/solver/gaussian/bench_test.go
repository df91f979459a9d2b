package gaussian

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// TestBenchOfFreeSolvers compares with an independent program: W2² ×10⁴ of iPNDM-4 and DPM-Solver++(2M) on EDM's grid,
// σ_max 80, for the patches' band variances.
func TestBenchOfFreeSolvers(t *testing.T) {
	s := bands(t)
	sch := isotropic(t, 6400, 1e-9)
	for _, c := range []struct {
		solver string
		nfe    int
		want   float64
	}{
		{"ipndm", 5, 89.06}, {"ipndm", 9, 13.75}, {"dpmpp2m", 5, 320.2}, {"dpmpp2m", 9, 220.1},
	} {
		set := solver.Settings{Solver: c.solver, NFE: c.nfe, Grid: solver.Grid{Kind: solver.GridEDM}}
		r := bench(t, s, split(t), plan(t, set, sch))
		near(t, c.solver, 1e4*r.W2, c.want, 2e-3)
		if r.Shift != 0 {
			t.Errorf("%s: centred data has a shift of %v", c.solver, r.Shift)
		}
		if c.solver != "dpmpp2m" {
			continue
		}
		// The same noise levels, the last step of second order too.
		no, list := false, []float64{}
		for _, st := range plan(t, set, sch).Stages {
			list = append(list, math.Sqrt(st.G[0]))
		}
		set = solver.Settings{
			Solver: c.solver, LowerOrderFinal: &no,
			Grid: solver.Grid{Kind: solver.GridSigma, Sigma: append(list, math.Sqrt(1e-9))},
		}
		near(t, "without lower_order_final", 1e4*bench(t, s, split(t), plan(t, set, sch)).W2,
			map[int]float64{5: 757.2, 9: 312.5}[c.nfe], 2e-3)
	}
}

// TestBenchAddsUp: bands add up to the whole, which a shared path makes the same in any basis.
func TestBenchAddsUp(t *testing.T) {
	s := patches(t)
	set := solver.Settings{Solver: "dpmpp2m", Steps: 6}
	whole := bench(t, s, split(t), plan(t, set, slanted(t, 1, 6400, 1e-9)))
	one := slanted(t, 1, 6400, 1e-9)
	four, err := one.Expand(schedule.Family{Basis: "dct"}, nil, 4)
	if err != nil {
		t.Fatal(err)
	}
	parts := bench(t, s, split(t, 1, 2, 4), plan(t, set, four))
	near(t, "spread", parts.Spread, whole.Spread, 1e-12)
	near(t, "shift", parts.Shift, whole.Shift, 1e-12)
	near(t, "noise", parts.Noise, whole.Noise, 1e-12)
	var sum, share float64
	for j, band := range parts.Bands {
		if want := []int{3, 9, 36, 144}[j]; band.Dims != want {
			t.Errorf("subspace %d has %d directions, want %d", j, band.Dims, want)
		}
		sum += band.W2
		share += band.Variance
	}
	near(t, "bands' sum", sum, parts.W2, 1e-12)
	near(t, "bands' variance", share, 1, 1e-12)
}

// TestBenchVanishes: W2² falls with the fourth power of the step for solvers of second order, down to what the finite
// ends of noise leave.
func TestBenchVanishes(t *testing.T) {
	s := bands(t)
	sch := isotropic(t, 1e8, 1e-8)
	for _, name := range []string{"heun", "ab", "ipndm_v", "dpmpp2m", "unipc"} {
		a := bench(t, s, split(t), plan(t, solver.Settings{Solver: name, Steps: 200}, sch)).W2
		b := bench(t, s, split(t), plan(t, solver.Settings{Solver: name, Steps: 400}, sch)).W2
		if a > 1e-3 || a/b < 12 {
			t.Errorf("%s: W2² is %v with 200 steps, %v with 400; want a sixteenth", name, a, b)
		}
	}
}

// TestShiftIsLeftByTheStart: a converged sampler that starts at mean zero keeps m²(λ + g_0)/(λ + T) of the squared
// mean.
func TestShiftIsLeftByTheStart(t *testing.T) {
	s := &Spectrum{H: 1, W: 1, C: 1, Directions: []Direction{{Mean: 2, Variance: 3}}}
	p := plan(t, solver.Settings{Solver: "ab", Steps: 2000}, isotropic(t, 400, 1e-6))
	r, err := s.Bench(basis.None(1, 1), p)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "shift", r.Shift, 4*3/(3+400.)/3, 1e-3)
}

func TestBenchRefuses(t *testing.T) {
	s := patches(t)
	p := plan(t, solver.Settings{Steps: 2}, isotropic(t, 400, 1e-6))
	dense, err := basis.Dense(2, 1, map[int][][]float64{basis.Shared: {{0.6, 0.8}}})
	if err != nil {
		t.Fatal(err)
	}
	flat := &Spectrum{H: 8, W: 8, C: 1, Directions: make([]Direction, 64)}
	for field, c := range map[string]struct {
		s *Spectrum
		b *basis.Basis
	}{
		"basis":    {s, dense},
		"schedule": {s, split(t, 2)},
		"dataset":  {flat, split(t)},
	} {
		_, err := c.s.Bench(c.b, p)
		if e := (*solver.Error)(nil); !errors.As(err, &e) || e.Field != field {
			t.Errorf("error %v, want one about %s", err, field)
		}
	}
	if _, err := s.Bench(basis.None(8, 8), &solver.Plan{Init: []float64{1}, States: true}); err == nil {
		t.Error("a history of states passed")
	}
	if _, err := s.Bench(basis.None(4, 4), p); err == nil {
		t.Error("a basis of another size passed")
	}
}

// TestHorizon: from noise of the horizon's variance the exact flow misses just the part of the variance that is asked
// for.
func TestHorizon(t *testing.T) {
	s := &Spectrum{H: 1, W: 2, C: 1, Directions: []Direction{{Variance: 3}, {Mean: 0.5, Variance: 1}}}
	for _, part := range []float64{0.5, 1e-2, 1e-4} {
		T := s.Horizon(part)
		a, b := 1-math.Sqrt(T/(3+T)), 1-math.Sqrt(T/(1+T))
		if got, want := 3*a*a+b*b+0.25/(1+T), part*4; math.Abs(got-want) > 1e-6*want {
			t.Errorf("part %g: from T = %v the flow misses %v, want %v", part, T, got, want)
		}
	}
	none := &Spectrum{H: 1, W: 1, C: 1, Directions: []Direction{{Mean: 1}}}
	if got := none.Horizon(1e-3); got != 0 {
		t.Errorf("without variance: %v", got)
	}
}

// simulate runs a plan on numbers, as a device does on images: x of subspace j, the flow of the Gaussian written out,
// and an error added to each evaluation.
func simulate(p *solver.Plan, j int, xi float64, d Direction, errs []float64) float64 {
	x := p.Init[j] * xi
	var history []float64 // newest first
	for i, s := range p.Stages {
		g := s.G[j]
		flow := -math.Sqrt(g) * (x - d.Mean) / (d.Variance + g)
		e := flow
		if p.Data {
			e = x + math.Sqrt(g)*flow
		}
		if errs != nil {
			e += errs[i]
		}
		history = append([]float64{e}, history...)
		x *= s.Alpha[j]
		for k, b := range s.Beta[j] {
			x += b * history[k]
		}
	}
	return x
}

func samplers(steps int) []solver.Settings {
	var out []solver.Settings
	for _, name := range solver.Names() {
		out = append(out, solver.Settings{Solver: name, Steps: steps})
	}
	return append(out,
		solver.Settings{Solver: "heun", SecondPoint: solver.Endpoint, Steps: steps},
		solver.Settings{Solver: "unipc", DenoiseToZero: true, Steps: steps})
}

// TestRunIsTheSampler: a ξ + b m is what the sampler makes of ξ, for every solver and option and in each subspace.
func TestRunIsTheSampler(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sch := slanted(t, 3, 400, 1e-6)
	for _, set := range samplers(6) {
		p := plan(t, set, sch)
		for j := range 3 {
			d := Direction{Mean: rng.NormFloat64(), Variance: math.Exp(3 * rng.NormFloat64())}
			r := newRunner(p, j)
			a, b := r.run(d.Variance, r.init)
			xi := rng.NormFloat64()
			got, want := a*xi+b*d.Mean, simulate(p, j, xi, d, nil)
			if math.Abs(got-want) > 1e-11*(math.Abs(want)+math.Abs(xi)) {
				t.Errorf("%+v, subspace %d: %v, simulated %v", set, j, got, want)
			}
		}
	}
}

// TestNoiseIsTheSpreadOfErrors: each evaluation is disturbed by itself.
func TestNoiseIsTheSpreadOfErrors(t *testing.T) {
	sch := slanted(t, 2, 400, 1e-6)
	for _, set := range samplers(5) {
		p := plan(t, set, sch)
		for j := range 2 {
			d := Direction{Mean: 0.3, Variance: 0.2}
			var want float64
			for i, s := range p.Stages {
				errs := make([]float64, len(p.Stages))
				errs[i] = math.Sqrt(d.Variance / (d.Variance + s.G[j]))
				if p.Data {
					errs[i] *= math.Sqrt(s.G[j])
				}
				// The sampler is linear: this difference is no approximation.
				off := simulate(p, j, 1, d, errs) - simulate(p, j, 1, d, nil)
				want += off * off
			}
			near(t, set.Solver+": noise", newRunner(p, j).noise(d.Variance), want, 1e-8)
		}
	}
}
