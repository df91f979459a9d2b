package solver

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule"
)

// fresh returns the noise of step i, the same at every call.
func fresh(i int, like state) state {
	rng := rand.New(rand.NewPCG(uint64(i), 5))
	out := like.clone()
	for j := range out {
		for k := range out[j] {
			out[j][k] = rng.NormFloat64()
		}
	}
	return out
}

// churned executes a plan with the noise of noises(i), i counting the stages.
func churned(p *Plan, xi state, flow flowFunc, noises func(i int, like state) state) state {
	return run(p, xi, flow, func(i int, x state) state {
		x = x.clone()
		if p.Stages[i].Noise == nil {
			return x
		}
		e := noises(i, x)
		for j, s := range p.Stages[i].Noise {
			for k := range x[j] {
				x[j][k] += s * e[j][k]
			}
		}
		return x
	})
}

// On EDM's schedule and grid the endpoint form with churn is EDM's stochastic sampler, algorithm 2 of arXiv:2206.00364,
// written out here; beyond the schedule's end too.
func TestEDMChurn(t *testing.T) {
	const n, sChurn, sMin, sMax, sNoise = 9, 3, 0.05, 100, 1.007
	s := append(edmLevels(n), 0)
	want, stage, kicks := scaled(latents, 80), 0, 0
	for i := range n {
		hat := s[i]
		if s[i] >= sMin && s[i] <= sMax {
			hat += hat * min(sChurn/float64(n), math.Sqrt2-1)
			kicks++
		}
		want = combine([]float64{1, sNoise * math.Sqrt(hat*hat-s[i]*s[i])}, want, fresh(stage, state{want})[0])
		d := slopeOf(crooked, want, hat)
		y := combine([]float64{1, s[i+1] - hat}, want, d)
		stage++
		if i < n-1 {
			y = combine([]float64{1, (s[i+1] - hat) / 2, (s[i+1] - hat) / 2}, want, d, slopeOf(crooked, y, s[i+1]))
			stage++
		}
		want = y
	}
	p := plan(t, Settings{
		SecondPoint: Endpoint, Grid: Grid{Kind: GridEDM}, Steps: n, DenoiseToZero: true,
		SChurn: sChurn, SMin: sMin, SMax: sMax, SNoise: sNoise,
	}, edm(t, schedule.DefaultT))
	checkVec(t, churned(p, state{latents}, flowOf(crooked), fresh)[0], want, 1e-9)
	got := 0
	for _, st := range p.Stages {
		if st.Noise != nil {
			got++
		}
	}
	if got != kicks || kicks == n || p.NFE != 2*n-1 {
		t.Errorf("%d of %d steps are churned in %d evaluations, want %d in %d", got, n, p.NFE, kicks, 2*n-1)
	}
}

// On Gaussian data a plan is linear in its start and in all the noise that it adds, so the covariance of what it makes
// is exact, A Aᵀ + Σ_i C_i C_iᵀ column by column. Started from the law of x at the start, it tends to that of x at the
// end at the solver's own order or better, however much noise is replaced on the way; with S_noise ≠ 1 it does not.
func TestChurnKeepsTheLaw(t *testing.T) {
	sch, flow, data := smooth(t), gaussian(7, 2), covariance(7, 2)
	const dims = 4
	law := func(t float64) []float64 {
		g, gdot := make([]float64, 2), make([]float64, 2)
		sch.Eval(0, t, g, gdot)
		out := slices.Clone(data)
		for d := range dims {
			out[d*dims+d] += g[d/2]
		}
		return out
	}
	var factor mat.Cholesky
	factor.Factorize(mat.NewSymDense(dims, law(sch.T())))
	root := mat.NewTriDense(dims, mat.Lower, nil)
	factor.LTo(root)
	miss := func(s Settings) float64 {
		p := plan(t, s, sch)
		got := make([]float64, dims*dims)
		add := func(x state) {
			for a := range dims {
				for b := range dims {
					got[a*dims+b] += x[a/2][a%2] * x[b/2][b%2]
				}
			}
		}
		none := state{{0, 0}, {0, 0}}
		for d := range dims {
			start := none.clone()
			for a := range dims {
				start[a/2][a%2] = root.At(a, d) / p.Init[a/2]
			}
			add(churned(p, start, flow, func(int, state) state { return none }))
			unit := none.clone()
			unit[d/2][d%2] = 1
			for i, st := range p.Stages {
				if st.Noise != nil {
					add(churned(p, none, flow, func(k int, _ state) state {
						if k == i {
							return unit
						}
						return none
					}))
				}
			}
		}
		return distance(state{got}, state{law(0)})
	}
	for name, order := range map[string]float64{"euler": 1, "heun": 2} {
		s := Settings{Solver: name, SChurn: 4}
		var errs []float64
		for _, s.Steps = range []int{20, 40} {
			errs = append(errs, miss(s))
		}
		if got := math.Log2(errs[0] / errs[1]); got < order-0.15 || errs[1] > 0.1 {
			t.Errorf("%s: errors %.2e fall by order %.2f, want %v", name, errs, got, order)
		}
		if s.SNoise = 1.05; miss(s) < 0.02 {
			t.Errorf("%s: too much noise goes unseen", name)
		}
	}
}

// Without S_churn the other numbers change nothing.
func TestNoChurn(t *testing.T) {
	for _, s := range []Settings{{Steps: 5}, {Steps: 5, Solver: "euler"}} {
		still := plan(t, s, kinked(t))
		s.SMin, s.SMax, s.SNoise = 0.1, 10, 1.01
		if got := plan(t, s, kinked(t)); !reflect.DeepEqual(got, still) {
			t.Errorf("%s: got %+v, want %+v", s.Solver, got, still)
		}
	}
}
