package gaussian

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

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
	for _, name := range solver.NamesOf(func(m solver.Method) bool { return !m.ByCoordinate }) {
		out = append(out, solver.Settings{Solver: name, Steps: steps})
	}
	return append(out,
		solver.Settings{Solver: "heun", SecondPoint: solver.Endpoint, Steps: steps},
		solver.Settings{Solver: "ipndm", AFS: true, Steps: steps},
		solver.Settings{Solver: "unipc", AFS: true, DenoiseToZero: true, Steps: steps})
}

// TestRunIsTheSampler: a ξ + b m is what the sampler makes of ξ, for every solver and option and in each subspace.
func TestRunIsTheSampler(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sch := slanted(t, 3, 400, 1e-6)
	for _, set := range samplers(6) {
		p := plan(t, set, sch)
		for j := range 3 {
			d := Direction{Mean: rng.NormFloat64(), Variance: math.Exp(3 * rng.NormFloat64())}
			a, b := Run(p, j, d.Variance)
			xi := rng.NormFloat64()
			got, want := a*xi+b*d.Mean, simulate(p, j, xi, d, nil)
			if math.Abs(got-want) > 1e-11*(math.Abs(want)+math.Abs(xi)) {
				t.Errorf("%+v, subspace %d: %v, simulated %v", set, j, got, want)
			}
		}
	}
}

// TestMomentsOfManySamples draws what Run says in closed form.
func TestMomentsOfManySamples(t *testing.T) {
	const n = 100_000
	p := plan(t, solver.Settings{Solver: "ab", Steps: 5}, isotropic(t, 400, 1e-6))
	d := Direction{Mean: 1.5, Variance: 0.7}
	a, b := Run(p, 0, d.Variance)
	rng := rand.New(rand.NewPCG(5, 6))
	var sum, squares float64
	for range n {
		x := simulate(p, 0, rng.NormFloat64(), d, nil)
		sum += x / n
		squares += x * x / n
	}
	if off := math.Abs(sum - b*d.Mean); off > 5*math.Abs(a)/math.Sqrt(n) {
		t.Errorf("mean of %d samples is %v off b m = %v", n, off, b*d.Mean)
	}
	near(t, "variance of samples", squares-sum*sum, a*a, 5*math.Sqrt(2./n))
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
			got, _ := newRunner(p, j).noise(d.Variance)
			near(t, set.Solver+": noise", got, want, 1e-8)
		}
	}
}

// TestRunConverges: the flow of a Gaussian is linear and carries ξ to
//
//	√T √((λ + g_0)/(λ + T)) ξ + (1 − √((λ + g_0)/(λ + T))) m;
//
// solvers come to it with their order, at most 2 from a first-order start.
func TestRunConverges(t *testing.T) {
	const T, g0, variance = 400, 1e-4, 0.5
	shrink := math.Sqrt((variance + g0) / (variance + T))
	sch := isotropic(t, T, g0)
	for _, set := range []struct {
		solver string
		order  int
		least  float64
	}{
		{"euler", 0, 1},
		{"heun", 0, 2},
		{"ab", 2, 2},
		{"ipndm", 4, 2},
		{"ipndm_v", 2, 2},
		{"dpmpp2m", 0, 2},
		{"dpmpp3m_taylor", 0, 2},
		{"unipc", 3, 2},
		{"deis", 3, 2},
	} {
		var off [2][2]float64
		for i, n := range []int{128, 512} {
			a, b := Run(plan(t, solver.Settings{Solver: set.solver, Order: set.order, Steps: n}, sch), 0, variance)
			off[i] = [2]float64{math.Abs(a - shrink*math.Sqrt(T)), math.Abs(b - (1 - shrink))}
		}
		for k, of := range []string{"a", "b"} {
			if off[1][k] > 1e-2 {
				t.Errorf("%s: %s is %v off after 512 steps", set.solver, of, off[1][k])
			}
			if slope := math.Log(off[0][k]/off[1][k]) / math.Log(4); slope < set.least-0.15 {
				t.Errorf("%s: %s converges with order %.2f, want %v", set.solver, of, slope, set.least)
			}
		}
	}
}

// Run executes subspace j of a plan on a direction of variance λ: the unit normal ξ becomes a ξ + b m for data of mean
// m. It is exact but for rounding. Noise that the plan adds is left out.
func Run(p *solver.Plan, j int, variance float64) (a, b float64) {
	r := newRunner(p, j)
	return r.run(variance, r.init)
}
