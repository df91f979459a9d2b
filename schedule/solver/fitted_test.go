package solver

import (
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// Coefficients taken from a plan of local are that plan.
func TestFittedIsItsCoefficients(t *testing.T) {
	sch, stats := edm(t, schedule.DefaultT), normalStatistics(t, 1, 0.2, 0.01)
	made := plan(t, Settings{Solver: LocalName, Steps: 4, Statistics: stats, Grid: Grid{Kind: GridPolynomial}}, sch)
	fitted := &Fitted{}
	for _, at := range made.T {
		fitted.Sigma = append(fitted.Sigma, sch.Sigma(0, at))
	}
	for _, st := range made.Stages {
		fitted.Alpha, fitted.Beta = append(fitted.Alpha, st.Alpha), append(fitted.Beta, st.Beta)
	}
	got := plan(t, Settings{Solver: FittedName, NFE: 4, Statistics: stats, Fitted: fitted}, sch)
	flow := func(x state, _ []float64) state { return x }
	xi := state{{1, 2}, {-1, 0.3}, {0.2, 4}}
	if d := distance(run(got, xi, flow, nil), run(made, xi, flow, nil)); d > 1e-12 {
		t.Errorf("relative distance %.1e", d)
	}
	for want, s := range map[string]Settings{
		"nfe must be 4":          {NFE: 5, Statistics: stats, Fitted: fitted},
		"grid must be left":      {NFE: 4, Statistics: stats, Fitted: fitted, Grid: Grid{Kind: GridEDM}},
		"solver must be another": {NFE: 4, Statistics: stats},
	} {
		s.Solver = FittedName
		if _, err := New(s, sch, 0); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
