package solver

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/schedule"
)

// laidOver returns the stages of a plan from step k on with its tail in front of them.
func laidOver(p *Plan, tails [][]Stage, k int) []Stage {
	stages := p.Stages[k:]
	out := append([]Stage(nil), stages...)
	for i, st := range tails[k-1] {
		out[i].Alpha, out[i].Beta = st.Alpha, st.Beta
	}
	return out
}

// What begins in the middle of a plan is the plan of the nodes that are left, and no more of it is told than differs.
func TestATailIsThePlanOfWhatIsLeft(t *testing.T) {
	times := []float64{9.3, 7, 3.4, 2.6, 1.9, 1.2, 0.2}
	check := func(sch *schedule.Schedule, s Settings, times []float64) {
		t.Helper()
		s.Grid = Grid{Kind: GridT, T: times}
		whole := plan(t, s, sch)
		tails, err := Tails(s, sch, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s.method().Churns {
			if tails != nil {
				t.Errorf("%s: tails without a history", s.Solver)
			}
			return
		}
		for k := 1; k < whole.Steps(); k++ {
			left := s
			left.Warmup, left.Grid.T = "", times[k:]
			want := plan(t, left, sch).Stages
			got := laidOver(whole, tails, k)
			for i := range got {
				got[i].Step = i
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v from step %d: %s", s, k, diff)
			}
			if n := len(tails[k-1]); n > 3 || n > 0 && tails[k-1][n-1].Combines(whole.Stages[k+n-1]) {
				t.Errorf("%+v from step %d: %d stages", s, k, n)
			}
		}
	}
	for _, ends := range [][]float64{times, append(times[:6:6], 0)} {
		everyOrder(func(m Method, order int) {
			for _, s := range []Settings{{}, {DenoiseToZero: true}, {Warmup: WarmupHeun}} {
				if s.Solver, s.Order = m.Name, order; s.Warmup == "" || m.warmsUpAt(order) {
					check(kinked(t), s, ends)
				}
			}
		})
		everyForm(t, func(_ *testing.T, s Settings) {
			s.Statistics = wavy(t, 3)
			check(edm(t, 100), s, ends)
		})
	}
}

// Fitted coefficients have tails that were fitted, too; without any, they begin as local of order 2 does.
func TestTailsOfFittedCoefficients(t *testing.T) {
	sch, stats := edm(t, 400), wavy(t, 3)
	local := plan(t, Settings{Solver: LocalName, Statistics: stats, NFE: 5, Grid: Grid{Kind: GridEDM}}, sch)
	fitted := &Fitted{}
	for _, time := range local.T {
		fitted.Sigma = append(fitted.Sigma, sch.Sigma(0, time))
	}
	for i, st := range local.Stages {
		alpha, beta := make([]float64, 3), make([][]float64, 3)
		for f := range alpha {
			alpha[f] = st.Alpha[f] + 0.1
			beta[f] = append([]float64(nil), st.Beta[f]...)
			beta[f][0] -= 0.01 * float64(i)
		}
		fitted.Alpha, fitted.Beta = append(fitted.Alpha, alpha), append(fitted.Beta, beta)
	}
	s := Settings{Solver: FittedName, Statistics: stats, Fitted: fitted, Steps: 5}
	tails, err := Tails(s, sch, 0)
	if err != nil {
		t.Fatal(err)
	}
	localTails, err := Tails(Settings{Solver: LocalName, Statistics: stats, NFE: 5, Grid: Grid{Kind: GridEDM}}, sch, 0)
	if err != nil {
		t.Fatal(err)
	}
	for k, tail := range tails[:3] {
		if len(tail) != 1 || !tail[0].Combines(localTails[k][0]) {
			t.Errorf("step %d: %+v, want local's %+v", k+1, tail, localTails[k])
		}
	}
	if len(tails[3]) != 0 {
		t.Errorf("the last step, of order 1, has the tail %+v", tails[3])
	}

	own := Weights{Alpha: [][]float64{{1, 2, 3}}, Beta: [][][]float64{{{0.5}, {0.25}, {0.125}}}}
	fitted.Tails = []Weights{{}, own, {}, {}}
	if tails, err = Tails(s, sch, 0); err != nil {
		t.Fatal(err)
	}
	if want := (Stage{Alpha: own.Alpha[0], Beta: own.Beta[0]}); len(tails[1]) != 1 || !tails[1][0].Combines(want) {
		t.Errorf("%+v, want the fitted %+v", tails[1], want)
	}
}
