package search_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
)

func paired(nfe int) search.Settings {
	return search.Settings{
		NFE: nfe, Solvers: []string{"ipndm", "dpmpp2m", "unipc"}, G0: 1e-9, T: 6400,
		Label: func(int, uint64) int32 { return -1 },
	}
}

// A search without images finds a sampler that is closer to the exact samples than the best plain one, says so from
// latents that it did not choose by, and keeps to its budget.
func TestPairedSearchGains(t *testing.T) {
	m := &counting{Ensemble: ensembletest.Smooth(4, 2)}
	set := paired(5)
	planned := 0
	set.Budget, set.Planned = 4000, func(n int) { planned = n }
	found, err := search.Paired(t.Context(), m, set)
	if err != nil {
		t.Fatal(err)
	}
	if found.Chosen == found.Against || !found.Gain.Clear() {
		t.Errorf("the search chose %s on %s, with a gain of %v", found.Chosen.Solver, found.Chosen.Levels,
			found.Gain)
	}
	ratio := found.Chosen.HeldOut[0] / found.Against.HeldOut[0]
	if math.Abs(math.Log(ratio)-found.Gain.Change) > 0.1 {
		t.Errorf("the gain is %v, the distances held back have the ratio %v", found.Gain, ratio)
	}
	if planned > 4000 || m.evaluations > planned*3/2 || planned > m.evaluations*3/2 {
		t.Errorf("%d evaluations were planned and %d made, want about 4000", planned, m.evaluations)
	}
}

// One large error decides the mean of the squares, and the score half as much. Each has an error of its own.
func TestPairedGainKeepsTheMean(t *testing.T) {
	g := search.PairedGain([]float64{1, 3}, []float64{4, 4})
	for name, c := range map[string]struct{ got, want float64 }{
		"mean":            {g.Mean.Change, math.Log(0.5)},
		"error of mean":   {g.Mean.Stderr, 0.5},
		"change":          {g.Change, math.Log(0.5*math.Sqrt(3)/4) / 2},
		"error of change": {g.Stderr, (1 + math.Log(3)) / 4},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s is %g, want %g", name, c.got, c.want)
		}
	}
}

// counting counts the evaluations of an ensemble, and leaves after some.
type counting struct {
	sampler.Ensemble
	evaluations, most int
}

func (c *counting) Follow(ctx context.Context, t sampler.Trajectories, into ...sampler.Reducer) error {
	if c.most > 0 && c.evaluations > c.most {
		return sampler.ErrLeft
	}
	c.evaluations += len(t.Labels) * t.Plan.NFE
	return c.Ensemble.Follow(ctx, t, into...)
}

// A network that leaves ends the search with the best so far, or with nothing if nothing was measured.
func TestSearchIsStopped(t *testing.T) {
	m := ensembletest.Smooth(4, 2)
	found, err := search.Paired(t.Context(), &counting{Ensemble: m, most: 9000}, paired(5))
	if err != nil || !found.Stopped || found.Chosen != found.Tries[0] {
		t.Errorf("the search ends with %+v, %v", found, err)
	}
	if _, err := search.Paired(t.Context(), &counting{Ensemble: m, evaluations: 2, most: 1}, paired(5)); !errors.Is(err,
		sampler.ErrLeft) {
		t.Errorf("nothing was measured, and the error is %v", err)
	}
}

// A budget that is too small says what is needed.
func TestPairedBudget(t *testing.T) {
	set := paired(5)
	set.Budget = 100
	_, err := search.Paired(t.Context(), ensembletest.Smooth(4, 2), set)
	budget, ok := errors.AsType[*search.BudgetError](err)
	if !ok || budget.Least <= 100 {
		t.Fatalf("the error is %v", err)
	}
	set.Budget = budget.Least
	if _, err := search.Paired(t.Context(), ensembletest.Smooth(4, 2), set); err != nil {
		t.Error(err)
	}
}
