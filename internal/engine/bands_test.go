package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/solvertest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Images of every usual size have plans of both solvers by coordinate, which are small and come back from disk.
func TestPlansInBands(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "schedules"), 0o755); err != nil {
		t.Fatal(err)
	}
	edm, err := schedule.EDM(schedule.DefaultT, schedule.DefaultG0)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]int{}
	for _, size := range [][3]int{{32, 32, 3}, {64, 64, 3}, {64, 64, 4}, {512, 512, 3}, {40, 72, 1}} {
		bands := local.BandsOf(size[0], size[1], size[2])
		variances := make([]float64, bands.Parts())
		for part := range variances {
			variances[part] = 1 / float64(1+part)
		}
		s := checkpoint.Schedule{Schedule: edm, Statistics: solvertest.Normal(t, bands, variances)}
		plan, err := solver.New(solver.Settings{Solver: "local", NFE: 6, Statistics: s.Statistics}, edm, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Fitted = &solver.Fitted{}
		for _, at := range plan.T {
			s.Fitted.Sigma = append(s.Fitted.Sigma, edm.Sigma(0, at))
		}
		for _, st := range plan.Stages {
			s.Fitted.Alpha, s.Fitted.Beta = append(s.Fitted.Alpha, st.Alpha), append(s.Fitted.Beta, st.Beta)
		}
		name := fmt.Sprintf("of-%dx%dx%d", size[0], size[1], size[2])
		if err := checkpoint.SaveSchedule(filepath.Join(dir, "schedules", name+".schedule"), s); err != nil {
			t.Fatal(err)
		}
		parts[name] = bands.Parts()
	}
	e := reopen(t, dir, Config{})
	for name, want := range parts {
		for _, solver := range []string{"local", "fitted"} {
			p := reply[api.Plan](t, e, "PlanSampler", fmt.Sprintf(
				`{"schedule":%q,"solver":%q,"nfe":6,"sigma_min":0.002,"sigma_max":80}`, name, solver))
			if len(p.Stages) != 6 || len(p.Stages[0].Alpha) != want || p.Coordinates.Bands == 0 {
				t.Errorf("%s, %s: %d stages of %d parts", name, solver, len(p.Stages), len(p.Stages[0].Alpha))
			}
			if text, err := json.Marshal(p); err != nil || len(text) > 1<<17 {
				t.Errorf("%s, %s: %d bytes, %v", name, solver, len(text), err)
			}
		}
	}
}
