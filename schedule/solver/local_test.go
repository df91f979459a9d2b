package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/solvertest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
)

// normalStatistics are those of a denoiser for a row of values of these variances.
func normalStatistics(t *testing.T, variances ...float64) *local.Statistics {
	t.Helper()
	return solvertest.Normal(t, basis.Bands{H: 1, W: len(variances), C: 1}, variances)
}

// everyForm calls f with each order of the solver local, with and without its corrector.
func everyForm(t *testing.T, f func(t *testing.T, s Settings)) {
	t.Helper()
	for order := 1; order <= 3; order++ {
		for _, corrector := range []bool{false, true} {
			t.Run(fmt.Sprintf("order %d, corrector %v", order, corrector), func(t *testing.T) {
				f(t, Settings{Solver: LocalName, Order: order, Corrector: corrector, Grid: Grid{Kind: GridPolynomial}})
			})
		}
	}
}

// A normal law that is centred, or whose denoiser is Wiener's about any mean, is carried to its end exactly, in one
// step or many:
//
//	x(s) = μ + √((λ + s²)/(λ + σ²)) (x(σ) − μ).
func TestLocalIsExactForANormalLaw(t *testing.T) {
	variances, means := []float64{0, 1e-6, 0.01, 0.7, 30, 1e6}, []float64{0.3, -1, 0, 2, 5, -40}
	sch, xi := edm(t, schedule.DefaultT), make(state, len(variances))
	for f := range xi {
		xi[f] = []float64{0.3, -1.7}
	}
	flow := func(x state, g []float64) state {
		out := x.clone()
		for f := range out {
			for k, v := range x[f] {
				out[f][k] = -math.Sqrt(g[f]) * (v - means[f]) / (variances[f] + g[f])
			}
		}
		return out
	}
	everyForm(t, func(t *testing.T, s Settings) {
		s.Statistics = normalStatistics(t, variances...)
		for _, steps := range []int{1, 2, 5} {
			s.Steps = steps
			got := run(plan(t, s, sch), xi, flow, nil)
			want := xi.clone()
			for f, lambda := range variances {
				scale := math.Sqrt((lambda + 0.002*0.002) / (lambda + 6400))
				for k, v := range xi[f] {
					want[f][k] = means[f] + scale*(80*v-means[f])
				}
				if d := math.Hypot(got[f][0]-want[f][0], got[f][1]-want[f][1]); !(d <= 1e-9*(1+80*math.Sqrt(lambda/6400))) {
					t.Errorf("%d steps, variance %v: got %v, want %v", steps, lambda, got[f], want[f])
				}
			}
		}
	})
}

// ofCoordinates returns the flow of a state whose parts are single coordinates.
func ofCoordinates(flow func(x, g []float64) []float64) flowFunc {
	return func(x state, g []float64) state {
		return slices.Collect(slices.Chunk(flow(slices.Concat(x...), g), 1))
	}
}

// Without any variance the solver is DPM-Solver++, and UniPC with the corrector.
func TestLocalWithoutVarianceIsDPMSolver(t *testing.T) {
	sch := edm(t, schedule.DefaultT)
	coordinates := state(slices.Collect(slices.Chunk(latents, 1)))
	flow := ofCoordinates(func(x, g []float64) []float64 { return flowOf(crooked)(state{x}, g)[0] })
	everyForm(t, func(t *testing.T, s Settings) {
		s.Statistics, s.Steps = normalStatistics(t, make([]float64, len(latents))...), 7
		known := Settings{Steps: 7, Grid: s.Grid, Order: s.Order, Solver: "unipc"}
		switch {
		case !s.Corrector && s.Order == 2:
			known.Solver, known.Order = "dpmpp2m", 0
		case !s.Corrector && s.Order == 3:
			known.Solver = "dpmpp3m_taylor"
		case !s.Corrector:
			known.Solver, known.Order = "euler", 0 // DDIM
		}
		got := run(plan(t, s, sch), coordinates, flow, nil)
		want := run(plan(t, known, sch), state{latents}, flowOf(crooked), nil)
		for f, v := range got {
			checkVec(t, v, vec{want[0][f]}, 1e-10)
		}
	})
}

// wavy are gains that are those of no normal law.
func wavy(t *testing.T, size int) *local.Statistics {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 8))
	row := local.Row{Variance: make([]float64, size)}
	for f := range row.Variance {
		row.Variance[f] = 0.2 + rng.Float64()
	}
	var sigma []float64
	for p := range 6 {
		s := 0.05 * math.Pow(3, float64(p))
		gain := make([]float64, size)
		for f, v := range row.Variance {
			gain[f] = (0.3 + 0.6*rng.Float64()) * v / (v + s*s)
		}
		sigma, row.Gain = append(sigma, s), append(row.Gain, gain)
	}
	s, err := local.New(basis.Bands{H: 1, W: size, C: 1}, nil, sigma, []local.Row{row})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever the statistics, a method begun exactly is of its order on a law that is not normal, and the corrector lifts
// it by one; half the slope of a line is of order 2.
func TestLocalOrderOfConvergence(t *testing.T) {
	const size = 3
	stats, flow := wavy(t, size), ofCoordinates(solvertest.Crossed(size).Flow)
	sch, xi := schedule.Isotropic(path(t, []float64{0, 1}, []float64{0.02, 4})), state{{0.4}, {-1.1}, {0.8}}
	everyForm(t, func(t *testing.T, s Settings) {
		s.Statistics, s.Grid = stats, Grid{}
		want, warm := float64(s.Order), s.Order-1
		if s.Corrector {
			want, warm = want+1, warm+1
		}
		same := ofPaths(t, slices.Repeat([]*schedule.Path{sch.At(0, 0)}, size)...) // for each coordinate
		got := slope(t, sch, flow, xi, s, warm, func(x state, times []float64) []state {
			return integrate(same, flow, x, times)
		})
		if math.Abs(got-want) > 0.2 {
			t.Errorf("order %.3f, want %v", got, want)
		}
	})
}

// Where the variance depends on the band alone, a band has the coefficients of each of its frequencies.
func TestLocalInBandsIsLocalByFrequency(t *testing.T) {
	bands := basis.Bands{H: 6, W: 4, C: 2, N: 5}
	index, _ := bands.Index()
	byBand := make([]float64, bands.Parts())
	for part := range byBand {
		byBand[part] = 3 / math.Pow(float64(1+part), 2)
	}
	var byFrequency []float64
	for _, b := range index {
		byFrequency = append(byFrequency, byBand[b*2:b*2+2]...)
	}
	everyForm(t, func(t *testing.T, s Settings) {
		s.Steps, s.Statistics = 5, solvertest.Normal(t, bands, byBand)
		got := plan(t, s, edm(t, schedule.DefaultT))
		s.Statistics = solvertest.Normal(t, basis.Bands{H: 6, W: 4, C: 2}, byFrequency)
		want := plan(t, s, edm(t, schedule.DefaultT))
		for i, st := range want.Stages {
			for f, alpha := range st.Alpha {
				part := index[f/2]*2 + f%2
				if got.Stages[i].Alpha[part] != alpha || !slices.Equal(got.Stages[i].Beta[part], st.Beta[f]) {
					t.Fatalf("stage %d, coordinate %d: part %d has other coefficients", i, f, part)
				}
			}
		}
	})
}

// However large the variance is beside the noise, the gain of nearly 1 is divided by nowhere.
func TestLocalWeightsAreBounded(t *testing.T) {
	everyForm(t, func(t *testing.T, s Settings) {
		s.Steps, s.Statistics = 9, normalStatistics(t, 1e-3, 1, 1e3, 1e9)
		for i, st := range plan(t, s, edm(t, schedule.DefaultT)).Stages {
			for f, beta := range st.Beta {
				sum := math.Abs(st.Alpha[f])
				for _, v := range beta {
					sum += math.Abs(v)
				}
				if !(sum <= 40) {
					t.Errorf("stage %d, coordinate %d: weights %v and %v", i, f, st.Alpha[f], beta)
				}
			}
		}
	})
}

// What local cannot do is said before anything is computed.
func TestLocalRefuses(t *testing.T) {
	stats := normalStatistics(t, 1, 2)
	for field, s := range map[string]Settings{
		"solver local needs a schedule with": {},
		"S_churn must be 0":                  {Statistics: stats, SChurn: 1},
		"warmup must be left":                {Statistics: stats, Warmup: WarmupHeun},
		"order must lie in 1 …":              {Statistics: stats, Order: 4},
	} {
		s.Solver, s.Steps = LocalName, 3
		if _, err := New(s, edm(t, schedule.DefaultT), 0); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("got %v, want %q", err, field)
		}
	}
	s := Settings{Solver: LocalName, Steps: 3, Statistics: stats}
	if _, err := New(s, smooth(t), 0); err == nil || !strings.Contains(err.Error(), "2 subspaces") {
		t.Errorf("two subspaces: got %v", err)
	}
}

// Coefficients taken from a plan of local are that plan.
func TestFittedIsItsCoefficients(t *testing.T) {
	sch, stats := edm(t, schedule.DefaultT), normalStatistics(t, 1, 0.2, 0.01)
	made := plan(t, Settings{Solver: LocalName, Steps: 4, Statistics: stats, Grid: Grid{Kind: GridPolynomial}}, sch)
	fitted := &Fitted{}
	for _, at := range made.T {
		fitted.Sigma = append(fitted.Sigma, sch.Sigma(0, at))
	}
	for _, st := range made.Stages {
		fitted.Alpha, fitted.Beta = append(fitted.Alpha, st.Alpha), append(fitted.Beta, st.Beta)
	}
	got := plan(t, Settings{Solver: FittedName, NFE: 4, Statistics: stats, Fitted: fitted}, sch)
	flow := func(x state, _ []float64) state { return x }
	xi := state{{1, 2}, {-1, 0.3}, {0.2, 4}}
	if d := distance(run(got, xi, flow, nil), run(made, xi, flow, nil)); d > 1e-12 {
		t.Errorf("relative distance %.1e", d)
	}
	for want, s := range map[string]Settings{
		"nfe must be 4":         {NFE: 5, Statistics: stats, Fitted: fitted},
		"grid must be left":     {NFE: 4, Statistics: stats, Fitted: fitted, Grid: Grid{Kind: GridEDM}},
		"solver fitted needs a": {NFE: 4, Statistics: stats},
	} {
		s.Solver = FittedName
		if _, err := New(s, sch, 0); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
