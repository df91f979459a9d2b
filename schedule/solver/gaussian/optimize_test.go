package gaussian

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// TestOptimizeReachesTheTable: W2² ×10⁴ of DPM-Solver++(2M) at NFE 5 and 9 on the patches' band variances, against the
// nodes that an independent program found by gradient descent.
func TestOptimizeReachesTheTable(t *testing.T) {
	s := bands(t)
	for _, c := range []struct {
		cuts []int
		nfe  int
		most float64
	}{{nil, 5, 0.45}, {nil, 9, 0.002}, {[]int{2}, 5, 0.12}, {[]int{2}, 9, 0.0006}, {[]int{1, 2, 4}, 5, 0.006}} {
		set := Settings{Sampler: solver.Settings{Solver: "dpmpp2m", NFE: c.nfe}}
		n := traded(t, s, split(t, c.cuts...), set, 1e-3, tieShare)
		if got := 1e4 * n.Report.W2; got > c.most {
			t.Errorf("cuts %v, NFE %d: W2² is %v, want at most %v", c.cuts, c.nfe, got, c.most)
		}
	}
}

// TestOptimizeEverySolver: chosen nodes are better than all starts, and two subspaces better than one.
func TestOptimizeEverySolver(t *testing.T) {
	s := patches(t)
	for _, set := range samplers(0) {
		set.NFE, set.Steps = 4, 0
		one := chosen(t, s, split(t), Settings{Sampler: set})
		two := chosen(t, s, split(t, 2), Settings{Sampler: set})
		cost := func(r *Report) float64 { return r.W2 + networkError*networkError*r.Noise }
		if cost(two.Report) > 1.001*cost(one.Report) {
			t.Errorf("%+v: %v with two subspaces, %v with one", set, cost(two.Report), cost(one.Report))
		}
		if one.Sampler.NFE > 4 {
			t.Errorf("%s: %d evaluations, want at most 4", set.Solver, one.Sampler.NFE)
		}
		for _, sigma := range starts(groupDirections(s.Directions), one.Sampler.Steps, 80, math.Sqrt(schedule.DefaultG0)) {
			path, err := pathThrough(sigma, schedule.DefaultT, schedule.DefaultG0)
			if err != nil {
				t.Fatal(err)
			}
			r := bench(t, s, split(t), plan(t, set, schedule.Isotropic(path)))
			if cost(one.Report) > 1.001*cost(r) {
				t.Errorf("%+v: %v, but %v at the start %v", set, cost(one.Report), cost(r), sigma)
			}
		}
	}
}

// TestScheduleIsItsNodes: the schedule's uniform grid passes through the noise levels.
func TestScheduleIsItsNodes(t *testing.T) {
	s, b := patches(t), split(t, 2)
	n := chosen(t, s, b, Settings{Sampler: solver.Settings{Solver: "ipndm", NFE: 5}, T: 400, G0: 1e-6})
	p := plan(t, n.Sampler, n.Schedule)
	if r := bench(t, s, b, p); !reflect.DeepEqual(r, n.Report) {
		t.Errorf("the schedule's plan gives %v, reported is %v", r.W2, n.Report.W2)
	}
	for i, st := range p.Stages {
		for j, g := range st.G {
			near(t, "variance of a stage", g, n.Sigma[j][i]*n.Sigma[j][i], 1e-15)
		}
	}
}

// TestOptimizeScales: the Gaussian times s wants noise levels times s.
func TestOptimizeScales(t *testing.T) {
	s := patches(t)
	set := Settings{Sampler: solver.Settings{Solver: "dpmpp2m", NFE: 5}, T: 400, G0: 1e-6}
	want := chosen(t, s, split(t, 2), set)
	const by = 4. // a power of two scales without rounding
	for i, d := range s.Directions {
		s.Directions[i] = Direction{Mean: by * d.Mean, Variance: by * by * d.Variance}
	}
	set.T, set.G0 = by*by*set.T, by*by*set.G0
	got := chosen(t, s, split(t, 2), set)
	near(t, "W2²", got.Report.W2, want.Report.W2, 1e-6)
	for j, list := range got.Sigma {
		for k, v := range list {
			near(t, "noise level", v, by*want.Sigma[j][k], 1e-3)
		}
	}
}

// TestNoiseAndTieAreTrades: a worse network is given calmer plans at the price of W2²; a strong tie makes the subspaces
// one.
func TestNoiseAndTieAreTrades(t *testing.T) {
	s, b := patches(t), split(t, 2)
	set := solver.Settings{Solver: "dpmpp2m", NFE: 5}
	good := traded(t, s, b, Settings{Sampler: set}, 1e-4, tieShare).Report
	bad := traded(t, s, b, Settings{Sampler: set}, 0.1, tieShare).Report
	if !(good.W2 < bad.W2 && good.Noise > bad.Noise) {
		t.Errorf("noise 1e-4 gives W2² %v, noise %v; noise 0.1 %v, %v", good.W2, good.Noise, bad.W2, bad.Noise)
	}
	tied := traded(t, s, b, Settings{Sampler: set}, networkError, 1e6)
	for k, v := range tied.Sigma[0] {
		near(t, "tied noise level", tied.Sigma[1][k], v, 1e-3)
	}
}

// TestOptimizeIsDeterministic, and tells its progress to the end.
func TestOptimizeIsDeterministic(t *testing.T) {
	s, b := patches(t), split(t, 2)
	var done, total int
	set := Settings{Sampler: solver.Settings{Solver: "unipc", NFE: 4}, Progress: func(d, n int) {
		if d != done+1 {
			t.Errorf("%d done after %d", d, done)
		}
		done, total = d, n
	}}
	first := chosen(t, s, b, set)
	if done != total || total == 0 {
		t.Errorf("progress ended at %d of %d", done, total)
	}
	set.Progress = nil
	if again := chosen(t, s, b, set); !reflect.DeepEqual(again.Sigma, first.Sigma) {
		t.Errorf("nodes %v, then %v", first.Sigma, again.Sigma)
	}
}

// TestOneStep has no node to choose.
func TestOneStep(t *testing.T) {
	n := chosen(t, patches(t), split(t, 2), Settings{
		Sampler: solver.Settings{Solver: "euler", NFE: 1}, T: 400,
		G0: 1e-4,
	})
	for _, list := range n.Sigma {
		if len(list) != 2 || list[0] != 20 || list[1] != 0.01 {
			t.Errorf("nodes %v, want the ends 20 and 0.01", list)
		}
	}
}

func TestOptimizeRefuses(t *testing.T) {
	s := patches(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Optimize(gone, s, split(t), Settings{Sampler: solver.Settings{NFE: 4}}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	for name, set := range map[string]Settings{
		"no steps":   {},
		"solver":     {Sampler: solver.Settings{Solver: "none", NFE: 4}},
		"order":      {Sampler: solver.Settings{Solver: "ab", Order: 9, NFE: 4}},
		"many steps": {Sampler: solver.Settings{Solver: "euler", NFE: 33}},
	} {
		_, err := Optimize(t.Context(), s, split(t), set)
		if e := (*solver.Error)(nil); !errors.As(err, &e) {
			t.Errorf("%s: error %v, want the solver's", name, err)
		}
	}
	ok := solver.Settings{Solver: "ab", NFE: 4}
	for field, set := range map[string]Settings{
		"grid": {Sampler: solver.Settings{Solver: "ab", NFE: 4, Grid: solver.Grid{Kind: solver.GridEDM}}},
		"T":    {Sampler: ok, T: 1e-9, G0: 1},
	} {
		_, err := Optimize(t.Context(), s, split(t), set)
		if e := (*solver.Error)(nil); !errors.As(err, &e) || e.Field != field {
			t.Errorf("error %v, want one about %s", err, field)
		}
	}
}

// TestLevels: any parameters give decreasing nodes with exact ends, and every such list has parameters.
func TestLevels(t *testing.T) {
	for _, theta := range [][]float64{{}, {0}, {3, -2, 0.5}, {-4, 4, 700, 0}} {
		sigma := levels(theta, 80, 1e-4)
		n := len(theta) + 1
		if sigma[0] != 80 || sigma[n] != 1e-4 {
			t.Errorf("ends are %v, %v", sigma[0], sigma[n])
		}
		for k := 1; k <= n && n < 4; k++ {
			if sigma[k] >= sigma[k-1] {
				t.Errorf("θ = %v: nodes %v do not decrease", theta, sigma)
			}
		}
	}
	want := []float64{80, 12, 1.5, 0.3, 0.01}
	for k, got := range levels(parameters(want), want[0], want[4]) {
		near(t, "node", got, want[k], 1e-13)
	}
}

// TestGroupsKeepWholes: grouping keeps the number of directions, their variance and their squared means, and joins only
// neighbours.
func TestGroupsKeepWholes(t *testing.T) {
	s := patches(t)
	groups := groupDirections(s.Directions)
	if len(groups) >= len(s.Directions) {
		t.Errorf("%d groups of %d directions", len(groups), len(s.Directions))
	}
	var n, variance, means, want float64
	last := 0.0
	for _, g := range groups {
		n += g.n
		variance += g.n * g.Variance
		means += g.Mean * g.Mean
		if !(g.Variance > last) {
			t.Errorf("variance %v after %v", g.Variance, last)
		}
		last = g.Variance
	}
	for _, d := range s.Directions {
		want += d.Mean * d.Mean
	}
	near(t, "directions", n, float64(len(s.Directions)), 0)
	near(t, "variance", variance, s.Variance(), 1e-12)
	near(t, "squared means", means, want, 1e-12)
}
