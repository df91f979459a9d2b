package gaussian

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/solvertest"
)

// network follows plans of J subspaces through a mixture's flow, from n latents of a seed.
func network(j, n int, seed uint64) SampleFunc {
	law := solvertest.Crossed(j)
	return func(_ context.Context, p *solver.Plan) ([]float32, error) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var out []float32
		for range n {
			x := make([]float64, j)
			for k := range x {
				x[k] = p.Init[k] * rng.NormFloat64()
			}
			var history [][]float64 // newest first
			for _, st := range p.Stages {
				e := law.Flow(x, st.G)
				if p.Data {
					for k := range e {
						e[k] = x[k] + math.Sqrt(st.G[k])*e[k]
					}
				}
				history = append([][]float64{e}, history...)
				for k := range x {
					x[k] *= st.Alpha[k]
					for i, b := range st.Beta[k] {
						x[k] += b * history[i][k]
					}
				}
			}
			for _, v := range x {
				out = append(out, float32(v))
			}
		}
		return out, nil
	}
}

// TestRefine: nodes chosen on another law's Gaussian come closer to a network's converged solution, on latents that
// the search has not seen too; the ends stay and the schedule passes through the nodes.
func TestRefine(t *testing.T) {
	for _, c := range []struct {
		name string
		cuts []int
		set  solver.Settings
		gain float64
	}{
		{"J = 1", nil, solver.Settings{Solver: "dpmpp2m", NFE: 6}, 0.8},
		{"J = 2", []int{2}, solver.Settings{Solver: "dpmpp2m", NFE: 6}, 0.8},
		{"J = 3", []int{2, 4}, solver.Settings{Solver: "ab", NFE: 5}, 0.8},
		{"heun", []int{2}, solver.Settings{Solver: "heun", NFE: 6}, 0.8},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := len(c.cuts) + 1
			from := optimize(t, bands(t), split(t, c.cuts...), Settings{Sampler: c.set, T: 400, G0: 1e-6})
			done := 0
			got, err := Refine(t.Context(), from, network(j, 48, 1), RefineSettings{Progress: func(d, total int) {
				if d < done || d > total {
					t.Errorf("progress %d of %d after %d", d, total, done)
				}
				done = d
			}})
			if err != nil {
				t.Fatal(err)
			}
			var held [2]float64
			if held[0], err = SolutionError(t.Context(), from.Sampler, from.Schedule, network(j, 500, 2)); err != nil {
				t.Fatal(err)
			}
			if held[1], err = SolutionError(t.Context(), from.Sampler, got.Schedule, network(j, 500, 2)); err != nil {
				t.Fatal(err)
			}
			t.Logf("error %.4f → %.4f, on other latents %.4f → %.4f", got.Before, got.After, held[0], held[1])
			if got.After > c.gain*got.Before || held[1] > held[0] {
				t.Errorf("error %.4f → %.4f, on other latents %.4f → %.4f", got.Before, got.After, held[0], held[1])
			}
			own, err := SolutionError(t.Context(), from.Sampler, got.Schedule, network(j, 48, 1))
			if err != nil || own != got.After {
				t.Errorf("the schedule's error is %v, %v; reported %v", own, err, got.After)
			}
			for k, sigma := range got.Sigma {
				near(t, "start", sigma[0], 20, 1e-12)
				near(t, "end", sigma[len(sigma)-1], 1e-3, 1e-12)
				for i, p := range plan(t, from.Sampler, got.Schedule).Stages {
					if c.set.Solver != "heun" {
						near(t, "node", math.Sqrt(p.G[k]), sigma[i], 1e-9)
					}
				}
			}
		})
	}
}

// TestRefineStops: at the first error of the network, and where there is nothing to move.
func TestRefineStops(t *testing.T) {
	from := optimize(t, bands(t), split(t), Settings{Sampler: solver.Settings{Solver: "euler", NFE: 3}, T: 400, G0: 1e-6})
	down, calls := errors.New("the device is gone"), 0
	_, err := Refine(t.Context(), from, func(ctx context.Context, p *solver.Plan) ([]float32, error) {
		if calls++; calls > 4 {
			return nil, down
		}
		return network(1, 4, 1)(ctx, p)
	}, RefineSettings{})
	if !errors.Is(err, down) || calls != 5 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	one := optimize(t, bands(t), split(t), Settings{Sampler: solver.Settings{Solver: "euler", NFE: 1}, T: 400, G0: 1e-6})
	got, err := Refine(t.Context(), one, network(1, 4, 1), RefineSettings{})
	if err != nil || got.Before != got.After {
		t.Errorf("%+v, %v", got, err)
	}
}
