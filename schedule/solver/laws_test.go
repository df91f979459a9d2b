package solver

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// kinked is a schedule with inner knots, different in the two subspaces.
func kinked(t *testing.T) *schedule.Schedule {
	t.Helper()
	return ofPaths(t, path(t, []float64{0, 0.9, 2.5, 3, 10}, []float64{1e-9, 1e-3, 0.1, 0.9, 100}),
		path(t, []float64{0, 4, 10}, []float64{1e-9, 0.02, 100}))
}

// A flow that does not depend on x or t is carried exactly by every solver: x_end = x − (U_end − U_start) flow. It pins
// Σ β in every stage.
func TestConstantFlow(t *testing.T) {
	sch := kinked(t)
	for _, name := range Names() {
		for _, grid := range []Grid{{}, {Kind: GridEDM}, {Kind: GridT, T: []float64{9, 5, 2, 1.1, 0.4}}} {
			s := Settings{Solver: name, Grid: grid}
			if grid.T == nil {
				s.Steps = 6
			}
			p := plan(t, s, sch)
			flow := state{{0.7, -0.2}, {1.1, 0.4}}
			got := run(p, noise(1, 2), func(state, []float64) state { return flow }, nil)
			want := noise(1, 2)
			for j := range want {
				g, _ := sch.At(0, j).Eval(p.T[len(p.T)-1])
				for k := range want[j] {
					want[j][k] = p.Init[j]*want[j][k] - (math.Sqrt(g)-p.Init[j])*flow[j][k]
				}
			}
			if d := distance(got, want); d > 1e-12 {
				t.Errorf("%s on %q: relative distance %.1e", name, grid.Kind, d)
			}
		}
	}
}

// ab of order p is exact where the flow is a polynomial of degree p − 1 in t, whatever the knots: x_end − x_start = −∫
// t^m dU, here by an independent fine quadrature.
func TestAdamsBashforthIntegratesPolynomials(t *testing.T) {
	sch := kinked(t)
	times := []float64{9.3, 7, 3.4, 2.6, 1.2, 0.2}
	for order := 1; order <= 3; order++ {
		for m := range order {
			p := plan(t, Settings{Solver: "ab", Order: order, Grid: Grid{Kind: GridT, T: times}}, sch)
			for i, st := range p.Stages[order-1:] {
				from, to := times[i+order-1], times[i+order]
				for j, beta := range st.Beta {
					var got float64
					for k, b := range beta {
						got += b * math.Pow(times[i+order-1-k], float64(m))
					}
					// Abel: ∫ t^m dU = [t^m U] − ∫ m t^{m−1} U dt, the latter by closed integrals of exponentials on the pieces
					// between knots.
					want := -momentOfU(sch.At(0, j), from, to, m)
					if math.Abs(got-want) > 1e-11*math.Max(1, math.Abs(want)) {
						t.Errorf("order %d, t^%d, step %d, subspace %d: %v, want %v", order, m, i, j, got, want)
					}
				}
			}
		}
	}
}

// momentOfU returns ∫_a^b t^m dU, m ≤ 2, U = √g, in closed form by parts on each piece, where U ∝ e^{κt}: ∫ t^m dU = [U
// (t^m − m t^{m−1}/κ + m(m−1) t^{m−2}/κ²)].
func momentOfU(p *schedule.Path, a, b float64, m int) float64 {
	tau, logg := p.Knots()
	var sum float64
	for k := 1; k < len(tau); k++ {
		lo, hi := math.Max(math.Min(a, b), tau[k-1]), math.Min(math.Max(a, b), tau[k])
		if lo >= hi {
			continue
		}
		kappa := (logg[k] - logg[k-1]) / (tau[k] - tau[k-1]) / 2
		at := func(t float64) float64 {
			u := math.Exp(logg[k-1]/2 + kappa*(t-tau[k-1]))
			switch m {
			case 0:
				return u
			case 1:
				return u * (t - 1/kappa)
			}
			return u * (t*t - 2*t/kappa + 2/(kappa*kappa))
		}
		sum += at(hi) - at(lo)
	}
	if a > b {
		return -sum
	}
	return sum
}

// Data prediction is exact where the denoised image is constant: x tends to it along a straight line in U.
func TestConstantImage(t *testing.T) {
	sch := kinked(t)
	image := state{{0.5, -0.3}, {0.2, 0.9}}
	flow := func(x state, g []float64) state {
		out := x.clone()
		for j := range out {
			for k := range out[j] {
				out[j][k] = (image[j][k] - x[j][k]) / math.Sqrt(g[j])
			}
		}
		return out
	}
	for _, name := range Names() {
		p := plan(t, Settings{Solver: name, Steps: 6}, sch)
		want := noise(1, 2)
		for j := range want {
			for k := range want[j] { // x = D + U/U_start (x_start − D)
				want[j][k] = image[j][k] + math.Sqrt(1e-9)/p.Init[j]*(p.Init[j]*want[j][k]-image[j][k])
			}
		}
		if d := distance(run(p, noise(1, 2), flow, nil), want); d > 1e-9 {
			t.Errorf("%s: relative distance %.1e", name, d)
		}
	}
}

// denoise_to_zero returns D of the last evaluation, at no cost.
func TestDenoiseToZero(t *testing.T) {
	sch, flow := kinked(t), gaussian(3, 2)
	for _, name := range Names() {
		plain := plan(t, Settings{Solver: name, Steps: 5}, sch)
		s := Settings{Solver: name, Steps: 5, DenoiseToZero: true}
		p := plan(t, s, sch)
		var want state
		run(plain, noise(4, 2), func(x state, g []float64) state {
			e := flow(x, g)
			want = denoised(x, e, g)
			return e
		}, nil)
		if d := distance(run(p, noise(4, 2), flow, nil), want); d > 1e-12 {
			t.Errorf("%s: relative distance %.1e", name, d)
		}
		if p.NFE != plain.NFE {
			t.Errorf("%s: %d evaluations, %d without", name, p.NFE, plain.NFE)
		}
	}
}

// With equal clocks every solver is its isotropic form: all subspaces have the numbers that the one subspace of the
// same path has, with every option and grid.
func TestEqualClocks(t *testing.T) {
	one := edm(t, schedule.DefaultT)
	three := ofPaths(t, one.At(0, 0), one.At(0, 0), one.At(0, 0))
	for _, name := range Names() {
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

// Steps of very different lengths make the equations of UniPC's weights as good as singular, but not their solution.
// The weights of the images still add up to what a constant image needs, x′ = U′/U x + (1 − U′/U) m.
func TestUniPCOnUnevenSteps(t *testing.T) {
	p := path(t, []float64{0, 100}, []float64{1e-6, 100})
	for name, sigma := range map[string][]float64{
		"short after long": {10, 1, 1 - 1e-9, 1 - 3e-9, 0.1, 0.01, 1e-3},
		"shorter still":    {10, 1, 1 - 1e-13, 0.01, 0.01 - 1e-13, 1e-3},
		"long after short": {5, 5 - 1e-8, 5 - 2e-8, 5 - 3e-8, 1e-3},
	} {
		for _, variant := range []string{BH1, "bh2"} {
			grid := Grid{Kind: GridSigma, Sigma: sigma}
			plan, err := New(Settings{Solver: "unipc", Order: 3, Variant: variant, Grid: grid}, schedule.Isotropic(p), 0)
			if err != nil {
				t.Errorf("%s, %s: %v", name, variant, err)
				continue
			}
			for i, s := range plan.Stages {
				var sum, size float64
				for _, v := range s.Beta[0] {
					sum += v
					size += math.Abs(v)
				}
				if want := 1 - s.Alpha[0]; !(math.Abs(sum-want) <= 1e-6*size) {
					t.Errorf("%s, %s: the weights of step %d add up to %g, want %g", name, variant, i, sum, want)
				}
			}
		}
	}
}
