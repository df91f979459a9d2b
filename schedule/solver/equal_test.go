package solver

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// With equal clocks every solver is its isotropic form: all subspaces have the numbers that the one subspace of the
// same path has, with every option and grid.
func TestEqualClocks(t *testing.T) {
	one := edm(t, schedule.DefaultT)
	three := ofPaths(t, one.At(0, 0), one.At(0, 0), one.At(0, 0))
	for _, name := range subspaceSolvers() {
		for _, s := range []Settings{
			{Steps: 6},
			{Steps: 6, Grid: Grid{Kind: GridEDM}},
			{Steps: 5, Grid: Grid{Kind: GridLogSNR}},
			{Steps: 4, Grid: Grid{Kind: GridTable, Table: "ays-sdxl"}, DenoiseToZero: true},
			{Steps: 6, SChurn: 2},
			{Steps: 6, Warmup: WarmupHeun},
		} {
			s.Solver = name
			if m := s.method(); s.SChurn > 0 && !m.Churns || s.Warmup == WarmupHeun && !m.WarmsUp {
				continue
			}
			t.Run(fmt.Sprint(name, " ", s.Grid.Kind, s.DenoiseToZero, s.SChurn, s.Warmup), func(t *testing.T) {
				want, got := plan(t, s, one), plan(t, s, three)
				if len(got.Stages) != len(want.Stages) || got.NFE != want.NFE || got.History != want.History {
					t.Fatalf("%d stages, %d evaluations, want %d and %d", len(got.Stages), got.NFE, len(want.Stages), want.NFE)
				}
				near := func(what string, g, w float64) {
					if math.Abs(g-w) > 1e-9*math.Abs(w) { // times come back from a geometric mean
						t.Errorf("%s is %v, want %v", what, g, w)
					}
				}
				for i, st := range got.Stages {
					for j := range 3 {
						near("G", st.G[j], want.Stages[i].G[0])
						near("alpha", st.Alpha[j], want.Stages[i].Alpha[0])
						if !slices.Equal(st.Beta[j], st.Beta[0]) {
							t.Errorf("stage %d: subspace %d has %v, the first %v", i, j, st.Beta[j], st.Beta[0])
						}
						for k, b := range want.Stages[i].Beta[0] {
							near("beta", st.Beta[j][k], b)
						}
					}
				}
				for j := range 3 {
					near("init", got.Init[j], want.Init[0])
				}
			})
		}
	}
}
