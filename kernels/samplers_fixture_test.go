package kernels_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// drive runs one plan per sample to its end and returns x.
func drive(t *testing.T, m *kernels.Model, w *kernels.Weights, latents []float32, labels []int32,
	plans []*solver.Plan,
) []float32 {
	t.Helper()
	ctx := context.Background()
	p := plans[0]
	tr, err := m.NewTrajectory(w, latents, labels, p.History, kernels.Bucket(len(plans)))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if p.Data {
		tr.KeepDenoised()
	}
	var init []float64
	for _, p := range plans {
		init = append(init, p.Init...)
	}
	if err := tr.Combine(ctx, init, nil); err != nil {
		t.Fatal(err)
	}
	for i, stage := range p.Stages {
		var g, alpha, beta []float64
		for _, p := range plans {
			g, alpha = append(g, p.Stages[i].G...), append(alpha, p.Stages[i].Alpha...)
			for _, b := range p.Stages[i].Beta {
				beta = append(beta, b...)
			}
		}
		if err := tr.Evaluate(ctx, g); err != nil {
			t.Fatalf("stage %d at t = %g: %v", i, stage.Time, err)
		}
		if err := tr.Combine(ctx, alpha, beta); err != nil {
			t.Fatalf("stage %d at t = %g: %v", i, stage.Time, err)
		}
	}
	x := make([]float32, len(latents))
	if err := tr.X(x); err != nil {
		t.Fatal(err)
	}
	return x
}

func plansOf(t *testing.T, s solver.Settings, sch *schedule.Schedule, rows []int64) []*solver.Plan {
	t.Helper()
	var out []*solver.Plan
	for _, row := range rows {
		p, err := solver.New(s, sch, int(row))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// TestAnisotropicSamplers compares the midpoint form on the schedule's own times and the endpoint form on EDM's noise
// levels, with one schedule and with every sample on the schedule of its class.
func TestAnisotropicSamplers(t *testing.T) {
	t.Parallel()
	m, w, _ := unetModel(t, "dct")
	for _, name := range []string{"samplers/anisotropic", "samplers/anisotropic_per_class"} {
		c := fixtures.Load(t, name)
		var T, g0 float64
		c.JSON("T", &T)
		c.JSON("g0", &g0)
		n := c.Shape("theta_g")[0]
		fam := schedule.Family{Basis: "dct", PerClass: n > 1}
		var labels []int
		var table [][]schedule.Theta
		g, h := rows(c.F64("theta_g"), n), rows(c.F64("theta_h"), n)
		for i := range n {
			table = append(table, []schedule.Theta{g[i], h[i]})
			if fam.PerClass {
				labels = append(labels, i)
			}
		}
		sch, err := schedule.FromTheta(fam, labels, table, T, g0)
		if err != nil {
			t.Fatal(err)
		}
		tol := boundsOf(t, c, "")
		for _, k := range []int{5, 8} {
			for stored, s := range map[string]solver.Settings{
				fmt.Sprintf("dct_S%d", k): {Solver: "heun", Steps: k - 1},
				fmt.Sprintf("dct_E%d", k): {Solver: "heun", SecondPoint: "endpoint", Grid: solver.Grid{Kind: "edm"}, Steps: k},
			} {
				plans := plansOf(t, s, sch, c.I64("schedule_row"))
				x := drive(t, m, w, image32(c, "latents"), labelsOf(c), plans)
				tol.check(t, name+" "+stored, stored, fixtures.Widen(x), image(c, stored))
			}
		}
	}
}
