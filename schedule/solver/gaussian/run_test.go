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
			a, b := Run(p, j, d.Variance)
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

// Run executes subspace j of a plan on a direction of variance λ: the unit normal ξ becomes a ξ + b m for data of mean
// m. It is exact up to rounding.
func Run(p *solver.Plan, j int, variance float64) (a, b float64) {
	r := newRunner(p, j)
	return r.run(variance, r.init)
}
