package solver

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/schedule"
)

// crooked is a denoiser that is no exact one: smooth, bounded, not linear.
func crooked(x vec, sigma float64) vec {
	rng := rand.New(rand.NewPCG(3, 3))
	out := make(vec, len(x))
	for i := range out {
		var s float64
		for k := range x {
			s += rng.NormFloat64() * x[k] / math.Sqrt(sigma*sigma+0.25)
		}
		out[i] = 0.6*math.Tanh(s) + 0.2*math.Sin(math.Log(sigma)+float64(i))
	}
	return out
}

// flowOf is the flow of a denoiser of one noise level, (D − x)/σ.
func flowOf(den denoiser) flowFunc {
	return func(x state, g []float64) state {
		s := math.Sqrt(g[0])
		return state{combine([]float64{1 / s, -1 / s}, den(x[0], s), x[0])}
	}
}

// edmLevels is EDM's rule, written as in its paper.
func edmLevels(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Pow(math.Pow(80, 1./7)+float64(i)/float64(n-1)*(math.Pow(0.002, 1./7)-math.Pow(80, 1./7)), 7)
	}
	return out
}

func scaled(x vec, f float64) vec { return combine([]float64{f}, x) }

var latents = vec{0.3, -1.2, 0.8, 2.1, -0.4}

func checkVec(t *testing.T, got, want vec, tol float64) {
	t.Helper()
	if d := distance(state{got}, state{want}); !(d <= tol) {
		t.Errorf("relative distance %.2e, want at most %.0e\n got %v\nwant %v", d, tol, got, want)
	}
}

// On EDM's schedule and grid, Heun's endpoint form is EDM's sampler. EDM ends at σ = 0, which is where denoise_to_zero
// goes; without it the plan stops at √g_0.
func TestEDMHeun(t *testing.T) {
	for _, n := range []int{5, 18} {
		want, calls := classicHeun(crooked, scaled(latents, 80), append(edmLevels(n), 0))
		s := Settings{SecondPoint: Endpoint, Grid: Grid{Kind: GridEDM}, Steps: n, DenoiseToZero: true}
		p := plan(t, s, edm(t, schedule.DefaultT))
		checkVec(t, run(p, state{latents}, flowOf(crooked), nil)[0], want, 1e-9)
		if p.NFE != calls || calls != 2*n-1 {
			t.Errorf("%d steps take %d evaluations, EDM's take %d", n, p.NFE, calls)
		}
		s.DenoiseToZero = false
		p = plan(t, s, edm(t, schedule.DefaultT))
		// The same Euler step from σ = 0.002 on, ended at √g_0.
		last, _ := classicHeun(crooked, scaled(latents, 80), edmLevels(n))
		left := math.Sqrt(schedule.DefaultG0) / 0.002
		want = combine([]float64{left, 1 - left}, last, crooked(last, 0.002))
		checkVec(t, run(p, state{latents}, flowOf(crooked), nil)[0], want, 1e-9)
	}
}

// Any list of noise levels on any schedule that spans them gives the same samples.
func TestMultistepSolvers(t *testing.T) {
	c := fixtures.Load(t, "samplers/isotropic")
	sigma := c.F64("multistep_sigmas")
	var nfe map[string]int
	c.JSON("nfe", &nfe)
	no := false
	for _, q := range []struct {
		name     string
		settings Settings
		classic  func(denoiser, vec, []float64) (vec, int)
		fixture  string
	}{
		{"ipndm", Settings{Solver: "ipndm"}, classicIPNDM, "ipndm4"},
		{"dpmpp2m", Settings{Solver: "dpmpp2m"}, classicDPM(2, 1, true), "dpmpp_2m"},
		{"dpmpp3m", Settings{Solver: "dpmpp3m", Order: 3}, classicDPM(3, 1, true), "dpmpp_3m"},
		{"dpmpp3m not lowered", Settings{Solver: "dpmpp3m", Order: 3, LowerOrderFinal: &no}, classicDPM(3, 1, false), ""},
		{"dpmpp3m_taylor", Settings{Solver: "dpmpp3m_taylor", Order: 3}, classicDPM(3, 2, true), "dpmpp_3m_taylor"},
		{"unipc bh2", Settings{Solver: "unipc", Order: 3}, classicUniPC(false, true), "unipc3_bh2"},
		{"unipc bh1", Settings{Solver: "unipc", Order: 3, Variant: BH1}, classicUniPC(true, true), ""},
		{"unipc not lowered", Settings{Solver: "unipc", Order: 3, LowerOrderFinal: &no}, classicUniPC(false, false), ""},
	} {
		t.Run(q.name, func(t *testing.T) {
			q.settings.Grid = Grid{Kind: GridSigma, Sigma: sigma}
			want, calls := q.classic(crooked, scaled(latents, 80), sigma)
			p := plan(t, q.settings, edm(t, schedule.DefaultT))
			checkVec(t, run(p, state{latents}, flowOf(crooked), nil)[0], want, 1e-9)
			if p.NFE != calls {
				t.Errorf("%d evaluations, want %d", p.NFE, calls)
			}
			if n, ok := nfe[q.fixture]; ok && p.NFE != n {
				t.Errorf("%d evaluations, the fixture has %d", p.NFE, n)
			}
		})
	}
}

func TestDEISCoefficients(t *testing.T) {
	c := fixtures.Load(t, "samplers/isotropic")
	want := c.F64("deis_tab3_coefficients") // [10, 4], of dx/dσ = −flow, the current one first
	p := plan(t, Settings{Solver: "deis", Grid: Grid{Kind: GridSigma, Sigma: c.F64("multistep_sigmas")}},
		edm(t, schedule.DefaultT))
	if len(p.Stages) != 10 {
		t.Fatalf("%d stages, want 10", len(p.Stages))
	}
	for i, st := range p.Stages {
		beta := append(append([]float64(nil), st.Beta[0]...), 0, 0, 0)
		for k := range 4 {
			if w := -want[4*i+k]; math.Abs(beta[k]-w) > 1e-9*math.Abs(want[4*i]) {
				t.Errorf("step %d, evaluation −%d: %v, want %v", i, k, beta[k], w)
			}
		}
	}
}

// The multistep samplers of the literature (diff-sampler's schedule_type polynomial, the sigmas of DPM-Solver++ and
// UniPC in their EDM forms) count n evaluations for n + 1 levels of EDM's rule from σ_max to σ_min, and end at
// x(σ_min).
func TestPolynomialGrid(t *testing.T) {
	c := fixtures.Load(t, "samplers/isotropic")
	want := c.F64("multistep_sigmas")
	var nfe map[string]int
	c.JSON("nfe", &nfe)
	n := len(want) - 1
	if nfe["ipndm4"] != n {
		t.Fatalf("the fixture counts %d evaluations for %d levels", nfe["ipndm4"], len(want))
	}
	sch := edm(t, schedule.DefaultT)
	for _, s := range []Settings{{NFE: n}, {Steps: n}} {
		s.Solver, s.Grid = "ipndm", Grid{Kind: GridPolynomial}
		p := plan(t, s, sch)
		if p.NFE != n || len(p.T) != len(want) {
			t.Fatalf("%d evaluations of %d levels, want %d of %d", p.NFE, len(p.T), n, len(want))
		}
		for i, w := range want {
			same(t, "noise level", sch.Sigma(0, p.T[i]), w)
		}
		x, _ := classicIPNDM(crooked, scaled(latents, 80), edmLevels(n+1))
		checkVec(t, run(p, state{latents}, flowOf(crooked), nil)[0], x, 1e-9)
	}
	// No step is cut to first order because the grid ends: Heun takes two evaluations for each.
	if p := plan(t, Settings{Steps: n, SecondPoint: Endpoint, Grid: Grid{Kind: GridPolynomial}}, sch); p.NFE != 2*n {
		t.Errorf("heun: %d evaluations, want %d", p.NFE, 2*n)
	}
	// Two subspaces share the times of the geometric mean's levels.
	two := twoPaths(t, []float64{0, 2, 6400}, []float64{1e-9, 3e-4, 6400}, []float64{1e-9, 2e-3, 6400})
	p := plan(t, Settings{Solver: "ab", NFE: n, Grid: Grid{Kind: GridPolynomial}}, two)
	for i, w := range want {
		same(t, "geometric mean", two.Sigma(0, p.T[i]), w)
	}
}

// The anisotropic samplers' noise levels and times, with shared and with per-class schedules; every sample on its own
// class's.
func TestAnisotropicGrids(t *testing.T) {
	for _, name := range []string{"samplers/anisotropic", "samplers/anisotropic_per_class"} {
		t.Run(name, func(t *testing.T) {
			c := fixtures.Load(t, name)
			sch, rows := fixtureSchedule(t, c), c.I64("schedule_row")
			for _, q := range []struct {
				points int // of the S grid; noise levels of the E grid
				s, e   string
			}{{5, "S5", "E5"}, {8, "S8", "E8"}} {
				for b, row := range rows {
					at := func(table string, k, j int) float64 { return c.F64(table)[(k*len(rows)+b)*2+j] }
					p, err := New(Settings{Steps: q.points - 1}, sch, int(row))
					if err != nil {
						t.Fatal(err)
					}
					if p.NFE != 2*(q.points-1) {
						t.Errorf("%s: %d evaluations", q.s, p.NFE)
					}
					for i, st := range p.Stages {
						k := q.points - 1 - i/2 // the fixture counts from t = 0
						for j := range 2 {
							want := at(q.s+"_U", k, j)
							if i%2 == 1 {
								want = at(q.s+"_Umid", k-1, j)
							}
							same(t, q.s, math.Sqrt(st.G[j]), want)
						}
						if i%2 == 0 {
							same(t, q.s+" time", st.Time, c.F64(q.s + "_t")[k])
						}
					}
					p, err = New(Settings{SecondPoint: Endpoint, Steps: q.points, Grid: Grid{Kind: GridEDM}}, sch, int(row))
					if err != nil {
						t.Fatal(err)
					}
					if p.NFE != 2*q.points-1 {
						t.Errorf("%s: %d evaluations", q.e, p.NFE)
					}
					for k, tk := range p.T {
						same(t, q.e+" time", tk, c.F64(q.e + "_t")[k*len(rows)+b])
					}
					for i, st := range p.Stages {
						for j := range 2 {
							same(t, q.e, math.Sqrt(st.G[j]), at(q.e+"_U", (i+1)/2, j))
						}
					}
				}
			}
		})
	}
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func fixtureSchedule(t *testing.T, c *fixtures.Case) *schedule.Schedule {
	t.Helper()
	var T, g0 float64
	c.JSON("T", &T)
	c.JSON("g0", &g0)
	g, h := c.F64("theta_g"), c.F64("theta_h")
	n := c.Shape("theta_g")[1]
	var theta [][]schedule.Theta
	var labels []int
	for r := range c.Shape("theta_g")[0] {
		theta = append(theta, []schedule.Theta{g[r*n : (r+1)*n], h[r*n : (r+1)*n]})
		labels = append(labels, r)
	}
	fam := schedule.Family{Basis: "dct", PerClass: len(theta) > 1}
	if !fam.PerClass {
		labels = nil
	}
	s, err := schedule.FromTheta(fam, labels, theta, T, g0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
