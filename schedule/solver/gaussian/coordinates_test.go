package gaussian

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/solvertest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// A plan in coordinates with the law's own variances has no error but that of the start, in one step or many; with
// others it has what running it on single latents shows.
func TestBenchOfCoordinates(t *testing.T) {
	law := &Spectrum{H: 2, W: 2, C: 1, Directions: []Direction{
		{Variance: 3},
		{Variance: 0.5},
		{Variance: 0.01},
		{Variance: 1e-4},
	}}
	b := basis.None(2, 2)
	path, err := schedule.NewPath([]float64{0, 6400}, []float64{1e-6, 6400})
	if err != nil {
		t.Fatal(err)
	}
	sch := schedule.Isotropic(path)
	bench := func(scale float64, steps int) (*Report, *solver.Plan) {
		variances := make([]float64, 4)
		for f, d := range law.Directions {
			variances[f] = scale * d.Variance
		}
		p, err := solver.New(solver.Settings{
			Solver: "local", Corrector: true, Steps: steps, Grid: solver.Grid{Kind: solver.GridPolynomial},
			Statistics: solvertest.Normal(t, 2, 2, 1, variances),
		}, sch, 0)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := law.Bench(b, p)
		if err != nil {
			t.Fatal(err)
		}
		return rep, p
	}
	for _, steps := range []int{1, 4} {
		rep, _ := bench(1, steps)
		var want float64 // of starting at σ² instead of λ + σ², and of ending at σ_min
		for _, d := range law.Directions {
			off := 80*math.Sqrt((d.Variance+0.002*0.002)/(d.Variance+6400)) - math.Sqrt(d.Variance)
			want += off * off / law.Variance()
		}
		if math.Abs(rep.W2-want) > 1e-9*want {
			t.Errorf("%d steps: W2² = %v, want %v", steps, rep.W2, want)
		}
	}
	rep, p := bench(0.5, 4)
	for f, d := range law.Directions {
		x := p.Init[0] // of ξ = 1
		var history []float64
		for _, st := range p.Stages {
			history = append([]float64{d.Variance / (d.Variance + st.G[0]) * x, x}, history...)
			next := st.Alpha[f] * x
			for k, beta := range st.Beta[f] {
				next += beta * history[k]
			}
			x = next
		}
		if got := rep.Bands[0].Output[f].Variance; math.Abs(got-x*x) > 1e-12*x*x {
			t.Errorf("direction %d: variance %v, want %v", f, got, x*x)
		}
	}
	if rep.W2 <= 0 || rep.Noise <= 0 {
		t.Errorf("W2² = %v, noise %v", rep.W2, rep.Noise)
	}
	turned := *law
	turned.C, turned.Directions = 2, append(law.Directions, law.Directions...)
	if _, err := turned.Bench(b, p); err == nil {
		t.Error("statistics of other images: accepted")
	}
}
