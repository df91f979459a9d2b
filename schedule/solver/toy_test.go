package solver

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/testing/solvertest"
	"github.com/anisoflight/anisoflight/schedule"
)

// The laboratory of these tests: a state of J subspaces, a flow in closed form, and a machine that does to it what a
// device does to images.

// state holds the coordinates of x in each subspace.
type state [][]float64

func (x state) clone() state {
	out := make(state, len(x))
	for j, v := range x {
		out[j] = slices.Clone(v)
	}
	return out
}

// flowFunc returns flow(x; g).
type flowFunc func(x state, g []float64) state

// start returns the state at which a plan starts from unit noise xi.
func (p *Plan) start(xi state) state {
	x := xi.clone()
	for j := range x {
		x[j] = scaled(x[j], p.Init[min(j, len(p.Init)-1)])
	}
	return x
}

// run executes a plan on unit noise xi. at, if not nil, may replace x before the evaluation of a stage; it sees the
// stage's number.
func run(p *Plan, xi state, flow flowFunc, at func(i int, x state) state) state {
	x := p.start(xi)
	var history []state
	for i, st := range p.Stages {
		if at != nil {
			x = at(i, x)
		}
		g := st.G
		if p.Coordinates != nil { // one noise level in all coordinates
			g = slices.Repeat(g, len(x))
		}
		e := flow(x, g)
		if p.Data {
			e = denoised(x, e, g)
		}
		if p.States {
			history = append([]state{x}, history...)
		}
		history = append([]state{e}, history...)
		next := x.clone()
		for j := range x {
			for k := range x[j] {
				next[j][k] = st.Alpha[j] * x[j][k]
				for h, b := range st.Beta[j] {
					next[j][k] += b * history[h][j][k]
				}
			}
		}
		x = next
	}
	return x
}

func denoised(x, flow state, g []float64) state {
	d := x.clone()
	for j := range d {
		for k := range d[j] {
			d[j][k] += math.Sqrt(g[j]) * flow[j][k]
		}
	}
	return d
}

// distance returns |a − b|/|b|.
func distance(a, b state) float64 {
	var num, den float64
	for j := range a {
		for k := range a[j] {
			num += (a[j][k] - b[j][k]) * (a[j][k] - b[j][k])
			den += b[j][k] * b[j][k]
		}
	}
	return math.Sqrt(num / den)
}

// gaussian returns the exact flow of centred Gaussian data whose coordinates in the whole space are correlated across
// subspaces,
//
//	flow = −M^{1/2} (C + M)^{−1} x,
//
// for J subspaces of two dimensions each and C random.
func gaussian(seed uint64, j int) flowFunc {
	n := 2 * j
	cov, m, b := mat.NewSymDense(n, covariance(seed, j)), mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	var factor mat.Cholesky
	return func(x state, g []float64) state {
		m.CopySym(cov)
		for i := range n {
			m.SetSym(i, i, m.At(i, i)+g[i/2])
			b.SetVec(i, x[i/2][i%2])
		}
		if !factor.Factorize(m) || factor.SolveVecTo(b, b) != nil {
			panic("no law is singular")
		}
		out := x.clone()
		for i := range n {
			out[i/2][i%2] = -math.Sqrt(g[i/2]) * b.AtVec(i)
		}
		return out
	}
}

// mixture returns the exact flow of a mixture that couples J subspaces of two dimensions each, at noise levels of their
// own.
func mixture(j int) flowFunc {
	law := solvertest.Crossed(2 * j)
	return func(x state, g []float64) state {
		var all []float64
		for _, v := range g {
			all = append(all, v, v)
		}
		return slices.Collect(slices.Chunk(law.Flow(slices.Concat(x...), all), 2))
	}
}

// covariance returns the C of gaussian, [2J, 2J].
func covariance(seed uint64, j int) []float64 {
	n := 2 * j
	rng := rand.New(rand.NewPCG(seed, 1))
	a, cov := mat.NewDense(n, n, nil), mat.NewSymDense(n, nil)
	for i := range n * n {
		a.Set(i/n, i%n, 0.4*rng.NormFloat64())
	}
	cov.SymOuterK(1, a)
	for i := range n {
		cov.SetSym(i, i, cov.At(i, i)+0.05)
	}
	return mat.DenseCopyOf(cov).RawMatrix().Data
}

// noise returns unit noise for J subspaces.
func noise(seed uint64, j int) state {
	rng := rand.New(rand.NewPCG(seed, 2))
	x := make(state, j)
	for i := range x {
		x[i] = []float64{rng.NormFloat64(), rng.NormFloat64()}
	}
	return x
}

// smooth returns a schedule of two different clocks without inner knots, on which every method shows its order.
func smooth(t *testing.T) *schedule.Schedule {
	t.Helper()
	return twoPaths(t, []float64{0, 1}, []float64{0.02, 4}, []float64{0.3, 4})
}

func twoPaths(t *testing.T, tau, g, h []float64) *schedule.Schedule {
	t.Helper()
	return ofPaths(t, path(t, tau, g), path(t, tau, h))
}

func path(t *testing.T, tau, g []float64) *schedule.Path {
	t.Helper()
	p, err := schedule.NewPath(tau, g)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ofPaths returns the schedule of a path for each subspace.
func ofPaths(t *testing.T, paths ...*schedule.Path) *schedule.Schedule {
	t.Helper()
	s, err := schedule.New(schedule.Family{Basis: "dct"}, nil, [][]*schedule.Path{paths})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// edm returns EDM's isotropic schedule on 32 knots.
func edm(t *testing.T, T float64) *schedule.Schedule {
	t.Helper()
	th, err := schedule.InitialTheta("edm", schedule.DefaultKnots, T, schedule.DefaultG0)
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Isotropic(th.Path(T, schedule.DefaultG0))
}

func plan(t *testing.T, s Settings, sch *schedule.Schedule) *Plan {
	t.Helper()
	p, err := New(s, sch, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// integrate returns the exact states at the given decreasing times, by the classical Runge–Kutta method on dx_j/dt =
// −flow_j u̇_j with steps far below any solver's.
func integrate(sch *schedule.Schedule, flow flowFunc, x state, times []float64) []state {
	g, gdot := make([]float64, sch.J()), make([]float64, sch.J())
	deriv := func(t float64, x state) state {
		sch.Eval(0, t, g, gdot)
		v := flow(x, g)
		for j := range v {
			for k := range v[j] {
				v[j][k] *= -gdot[j] / (2 * math.Sqrt(g[j]))
			}
		}
		return v
	}
	plus := func(x, v state, h float64) state {
		y := x.clone()
		for j := range y {
			for k := range y[j] {
				y[j][k] += h * v[j][k]
			}
		}
		return y
	}
	out := []state{x}
	for i := 1; i < len(times); i++ {
		n := 1 + int(2000*(times[i-1]-times[i])/sch.T())
		h := (times[i] - times[i-1]) / float64(n)
		for k := range n {
			t := times[i-1] + float64(k)*h
			a := deriv(t, x)
			b := deriv(t+h/2, plus(x, a, h/2))
			c := deriv(t+h/2, plus(x, b, h/2))
			d := deriv(t+h, plus(x, c, h))
			x = plus(plus(plus(plus(x, a, h/6), b, h/3), c, h/3), d, h/6)
		}
		out = append(out, x)
	}
	return out
}
