package schedule

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
)

var cases = []string{"schedule/edm32", "schedule/perturbed32", "schedule/small5"}

// relative checks |got − want| ≤ tol·|want|, entry by entry.
func relative(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*math.Abs(want[i])) {
			t.Errorf("%s[%d]: %v, want %v", what, i, got[i], want[i])
		}
	}
}

type fixture struct {
	*fixtures.Case
	theta Theta
	T, g0 float64
}

func load(t *testing.T, name string) fixture {
	t.Helper()
	f := fixture{Case: fixtures.Load(t, name)}
	f.theta = f.F64("theta")
	f.JSON("T", &f.T)
	f.JSON("g0", &f.g0)
	return f
}

func TestPathParity(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			f := load(t, name)
			p := f.theta.Path(f.T, f.g0)
			tau, logg := p.Knots()
			relative(t, "τ", tau, f.F64("tau"), 0)
			if d := fixtures.RelMax(logg, f.F64("log_knots")); d > 1e-12 {
				t.Errorf("ln g at the knots differs by %.1e", d)
			}
			g, gdot := make([]float64, len(f.F64("t"))), make([]float64, len(f.F64("t")))
			after := make([]float64, len(g)) // ġ of the interval to the right, at knots
			for i, ti := range f.F64("t") {
				g[i], gdot[i] = p.Eval(ti)
				_, after[i] = p.Eval(math.Nextafter(ti, f.T))
			}
			relative(t, "g", g, f.F64("g"), 1e-9)
			relative(t, "ġ", gdot, f.F64("gdot"), 1e-9)
			relative(t, "ġ from the right", after, f.F64("gdot_right"), 1e-9)
			var inverse []float64
			for _, s := range f.F64("sigma") {
				inverse = append(inverse, p.Inverse(s*s))
			}
			if d := fixtures.RelMax(inverse, f.F64("t_of_sigma")); d > 1e-9 {
				t.Errorf("the inverse differs by %.1e", d)
			}
		})
	}
}

func TestChainParity(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			f := load(t, name)
			n := len(f.theta)
			p := f.theta.Path(f.T, f.g0)
			var dg, dgdot, dl []float64
			for _, ti := range f.F64("t") {
				row := make([]float64, n)
				f.theta.Chain(f.T, f.g0, ti, 1, 0, row)
				dg = append(dg, row...)
				row = make([]float64, n)
				f.theta.Chain(f.T, f.g0, ti, 0, 1, row)
				dgdot = append(dgdot, row...)
			}
			for k := range n + 1 {
				unit, row := make([]float64, n+1), make([]float64, n)
				unit[k] = 1
				f.theta.Pull(f.T, f.g0, unit, row)
				dl = append(dl, row...)
			}
			for what, pair := range map[string][2][]float64{
				"∂g/∂θ": {dg, f.F64("dg_dtheta")}, "∂ġ/∂θ": {dgdot, f.F64("dgdot_dtheta")},
				"∂ln g/∂θ": {dl, f.F64("dl_dtheta")},
			} {
				if d := fixtures.RelMax(pair[0], pair[1]); d > 1e-9 {
					t.Errorf("%s differs by %.1e", what, d)
				}
			}
			// Row by row as well: g spans 29 e-folds, so the large rows hide the small.
			for i, ti := range f.F64("t") {
				g, _ := p.Eval(ti)
				for k := range n {
					if d := math.Abs(dg[i*n+k]-f.F64("dg_dtheta")[i*n+k]) / g; d > 1e-9 {
						t.Errorf("∂ln g(%v)/∂θ_%d differs by %.1e", ti, k, d)
					}
				}
			}
		})
	}
}

func randomTheta(rng *rand.Rand, n int, spread float64) Theta {
	th := make(Theta, n)
	for i := range th {
		th[i] = spread * rng.NormFloat64()
	}
	return th
}

// What the chain to θ and to the knots' ln g adds agrees with finite differences of g and ġ.
func TestChainFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		th := randomTheta(rng, 1+rng.IntN(12), 2)
		T, g0 := 10+100*rng.Float64(), 1e-3*rng.Float64()+1e-5
		at, a, b := T*rng.Float64(), rng.NormFloat64(), T*rng.NormFloat64()
		value := func(p *Path) float64 {
			g, gdot := p.Eval(at)
			return a*g + b*gdot
		}
		got, before := randomTheta(rng, len(th), 1), make([]float64, len(th))
		copy(before, got)
		th.Chain(T, g0, at, a, b, got)
		const h = 1e-5
		scale := math.Abs(value(th.Path(T, g0)))
		for i := range th {
			up, down := append(Theta(nil), th...), append(Theta(nil), th...)
			up[i] += h
			down[i] -= h
			want := (value(up.Path(T, g0)) - value(down.Path(T, g0))) / (2 * h)
			if math.Abs(got[i]-before[i]-want) > 1e-6*(scale+math.Abs(want)) {
				t.Errorf("∂/∂θ_%d: %v, want %v", i, got[i]-before[i], want)
			}
		}
		p := th.Path(T, g0)
		dlogg := make([]float64, len(th)+1)
		p.Chain(at, a, b, dlogg)
		for k := range dlogg {
			moved := func(d float64) *Path {
				q := &Path{tau: p.tau, logg: append([]float64(nil), p.logg...), g: append([]float64(nil), p.g...)}
				q.logg[k] += d
				q.g[k] *= math.Exp(d)
				return q
			}
			want := (value(moved(h)) - value(moved(-h))) / (2 * h)
			if math.Abs(dlogg[k]-want) > 1e-6*(scale+math.Abs(want)) {
				t.Errorf("∂/∂ln g_%d: %v, want %v", k, dlogg[k], want)
			}
		}
	}
}

// Whatever θ is, the path is strictly increasing between its exact ends, and Inverse inverts it.
func TestThetaLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for trial := range 200 {
		spread := []float64{0.5, 5, 50, 1e6, 1e12}[trial%5]
		th := randomTheta(rng, 1+rng.IntN(40), spread)
		const T, g0 = 6400, 1e-9
		p := th.Path(T, g0)
		if g, _ := p.Eval(0); g != g0 || p.G0() != g0 {
			t.Fatalf("g(0) = %v", g)
		}
		if g, _ := p.Eval(T); g != T || p.GT() != T || p.T() != T {
			t.Fatalf("g(T) = %v", g)
		}
		tau, logg := p.Knots()
		for k := 1; k < len(tau); k++ {
			if !(tau[k] > tau[k-1]) || !(logg[k] > logg[k-1]) {
				t.Fatalf("spread %v: knot %d does not rise: %v after %v", spread, k, logg[k], logg[k-1])
			}
			if g, gdot := p.Eval((tau[k] + tau[k-1]) / 2); !(g > 0) || !(gdot > 0) {
				t.Fatalf("spread %v: g = %v, ġ = %v", spread, g, gdot)
			}
		}
		last := 0.0
		for i := range 400 {
			g, _ := p.Eval(T * float64(i) / 399)
			if g < last {
				t.Fatalf("g falls from %v to %v", last, g)
			}
			last = g
		}
		if spread < 100 {
			for range 20 {
				g := math.Exp(math.Log(g0) + rng.Float64()*math.Log(T/g0))
				if back, _ := p.Eval(p.Inverse(g)); math.Abs(back/g-1) > 1e-7 {
					t.Errorf("g(t(%v)) = %v", g, back)
				}
			}
		}
	}
}

// ġ is the derivative of g, from the left at a knot, from the right at 0.
func TestEvalDerivative(t *testing.T) {
	p := path(t, []float64{0, 1, 4, 10}, []float64{0.01, 0.5, 0.7, 30})
	const h = 1e-6
	for _, at := range []float64{0.3, 1, 2, 4, 7, 10} {
		g, gdot := p.Eval(at)
		before, _ := p.Eval(at - h)
		if want := (g - before) / h; math.Abs(gdot/want-1) > 1e-4 {
			t.Errorf("ġ(%v) = %v, want %v", at, gdot, want)
		}
	}
	g, gdot := p.Eval(0)
	after, _ := p.Eval(h)
	if want := (after - g) / h; math.Abs(gdot/want-1) > 1e-4 {
		t.Errorf("ġ(0) = %v, want %v", gdot, want)
	}
	// Outside [0, T] the nearer end counts.
	for _, q := range [][2]float64{{-1, 0.01}, {11, 30}} {
		if g, _ := p.Eval(q[0]); g != q[1] {
			t.Errorf("g(%v) = %v, want %v", q[0], g, q[1])
		}
	}
}

func TestInverseIsExactAtKnots(t *testing.T) {
	tau, g := []float64{0, 1, 4, 10}, []float64{0.01, 0.5, 0.7, 30}
	p := path(t, tau, g)
	for k := range tau {
		if got := p.Inverse(g[k]); got != tau[k] {
			t.Errorf("t(%v) = %v, want %v", g[k], got, tau[k])
		}
	}
	for _, q := range [][2]float64{{0.001, 0}, {31, 10}, {math.Inf(1), 10}, {-1, 0}} {
		if got := p.Inverse(q[0]); got != q[1] {
			t.Errorf("t(%v) = %v, want %v", q[0], got, q[1])
		}
	}
}

func TestNewPathRefuses(t *testing.T) {
	for _, q := range []struct {
		name   string
		tau, g []float64
		row    int
		says   string
	}{
		{"lengths", []float64{0, 1}, []float64{1}, -1, "2 times and 1"},
		{"one knot", []float64{0}, []float64{1}, 0, "two knots"},
		{"empty", nil, nil, -1, "two knots"},
		{"late start", []float64{1, 2}, []float64{1, 2}, 0, "t must start at 0"},
		{"t falls", []float64{0, 2, 1}, []float64{1, 2, 3}, 2, "strictly increasing"},
		{"t repeats", []float64{0, 2, 2}, []float64{1, 2, 3}, 2, "strictly increasing"},
		{"g falls", []float64{0, 1, 2}, []float64{1, 2, 1.5}, 2, "g must be strictly"},
		{"g repeats", []float64{0, 1, 2}, []float64{1, 1, 2}, 1, "g must be strictly"},
		{"g zero", []float64{0, 1}, []float64{0, 1}, 0, "positive"},
		{"g NaN", []float64{0, 1}, []float64{1, math.NaN()}, 1, "finite"},
		{"g infinite", []float64{0, 1}, []float64{1, math.Inf(1)}, 1, "finite"},
		{"t NaN", []float64{0, math.NaN()}, []float64{1, 2}, 1, "finite"},
		{"t infinite", []float64{0, math.Inf(1)}, []float64{1, 2}, 1, "finite"},
	} {
		t.Run(q.name, func(t *testing.T) {
			_, err := NewPath(q.tau, q.g)
			var bad *Error
			if !errors.As(err, &bad) || bad.Row != q.row || !strings.Contains(bad.Msg, q.says) {
				t.Errorf("%v; want row %d and %q", err, q.row, q.says)
			}
		})
	}
}

func TestPathKeepsItsKnots(t *testing.T) {
	tau, g := []float64{0, 1}, []float64{1, 2}
	p := path(t, tau, g)
	tau[1], g[1] = 9, 9
	a, b := p.Knots()
	a[1], b[1] = 9, 9
	if p.T() != 1 || p.GT() != 2 {
		t.Error("a caller's slice is shared")
	}
}
