package solver

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// A plan with an analytical first step is the plan whose network returns q x in its first evaluation, and its tails
// are those of that plan.
func TestAnalyticalIsThePlanWithAKnownFirstEvaluation(t *testing.T) {
	const variance = 0.3
	for _, s := range []Settings{
		{Solver: "ipndm", NFE: 6},
		{Solver: "unipc", Order: 2, NFE: 5},
		{Solver: "unipc", Order: 3, NFE: 6},
		{Solver: "dpmpp2m", NFE: 4},
		{Solver: "deis", NFE: 5},
		{Solver: "euler", NFE: 2},
		{Solver: "ab", NFE: 6},
	} {
		s.Grid = Grid{Kind: GridPolynomial, Rho: 4}
		sch := edm(t, 400)
		p := plan(t, s, sch)
		tails, err := Tails(s, sch, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, own := Analytical(p, tails, variance)
		if got == nil {
			t.Fatalf("%+v: no plan", s)
		}
		first := math.Sqrt(p.Stages[0].G[0])
		known := func(x vec, sigma float64) vec {
			if sigma == first {
				return scaled(x, variance/(variance+sigma*sigma))
			}
			return crooked(x, sigma)
		}
		xi := state{latents}
		checkVec(t, run(got, xi, flowOf(crooked), nil)[0], run(p, xi, flowOf(known), nil)[0], 1e-12)
		if got.NFE != p.NFE-1 || len(got.Stages) != got.NFE || got.Steps() != p.Steps()-1 {
			t.Errorf("%+v: %d evaluations in %d steps of %d in %d", s, got.NFE, got.Steps(), p.NFE, p.Steps())
		}
		for k := 1; k < got.Steps() && len(tails) > 0; k++ {
			begun := func(p *Plan, tails [][]Stage, k int) vec {
				tail := *p
				tail.Stages, tail.Init = laidOver(p, tails, k), []float64{1}
				return run(&tail, xi, flowOf(crooked), nil)[0]
			}
			checkVec(t, begun(got, own, k), begun(p, tails, k+1), 1e-12)
		}
	}
}

func TestNotEveryPlanHasAnAnalyticalFirstStep(t *testing.T) {
	for _, s := range []Settings{
		{Solver: "heun", NFE: 6}, {Solver: "euler", NFE: 1}, {Solver: "euler", NFE: 4, SChurn: 2},
	} {
		if got, _ := Analytical(plan(t, s, edm(t, schedule.DefaultT)), nil, 0.3); got != nil {
			t.Errorf("%+v: %+v", s, got)
		}
	}
}
