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
	}
}
