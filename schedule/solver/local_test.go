package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/internal/testing/solvertest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// byPart is local in parts of a row of values with these variances at all noise levels.
func byPart(l Local, variances ...float64) Local {
	l.Coordinates = &Coordinates{Bands: basis.Bands{H: 1, W: len(variances), C: 1}, Axes: [][]float64{nil}}
	l.Variance = func(dst []float64, _ float64) { copy(dst, variances) }
	return l
}

// everyOrder calls f with each order of local.
func everyLocal(t *testing.T, f func(t *testing.T, l Local)) {
	t.Helper()
	for order := 1; order <= 3; order++ {
		t.Run(fmt.Sprintf("order %d", order), func(t *testing.T) { f(t, Local{Order: order, LowerOrderFinal: true}) })
	}
}

// localPlan returns the plan of steps on EDM's rule from σ = 80.
func localPlan(t *testing.T, l Local, steps int) *Plan {
	t.Helper()
	p, err := l.On(schedule.EDMLevels(80, 0.002, 7, steps+1)).Plan(edm(t, schedule.DefaultT))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A normal law that is centred, or whose denoiser is Wiener's about any mean, is carried to its end exactly, in one
// step or many:
//
//	x(s) = μ + √((λ + s²)/(λ + σ²)) (x(σ) − μ).
func TestLocalIsExactForANormalLaw(t *testing.T) {
	variances, means := []float64{0, 1e-6, 0.01, 0.7, 30, 1e6}, []float64{0.3, -1, 0, 2, 5, -40}
	xi := make(state, len(variances))
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
	everyLocal(t, func(t *testing.T, l Local) {
		for _, steps := range []int{1, 2, 5} {
			got := run(localPlan(t, byPart(l, variances...), steps), xi, flow, nil)
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

// Without any variance the steps are DPM-Solver++'s, in parts or with one set of weights.
func TestLocalWithoutVarianceIsDPMSolver(t *testing.T) {
	coordinates := state(slices.Collect(slices.Chunk(latents, 1)))
	flow := ofCoordinates(func(x, g []float64) []float64 { return flowOf(crooked)(state{x}, g)[0] })
	everyLocal(t, func(t *testing.T, l Local) {
		known := Settings{Steps: 7, Grid: Grid{Kind: GridPolynomial}}
		known.Solver = []string{"euler", "dpmpp2m", "dpmpp3m_taylor"}[l.Order-1] // Euler's is DDIM
		if l.Order == 3 {
			known.Order = 3
		}
		want := run(plan(t, known, edm(t, schedule.DefaultT)), state{latents}, flowOf(crooked), nil)
		got := run(localPlan(t, byPart(l, make([]float64, len(latents))...), 7), coordinates, flow, nil)
		for f, v := range got {
			checkVec(t, v, vec{want[0][f]}, 1e-10)
		}
		one := run(localPlan(t, l, 7), state{latents}, flowOf(crooked), nil)
		checkVec(t, one[0], want[0], 1e-10)
	})
}

// wavy has variances that are those of no normal law: they change with the noise level.
func wavy(l Local, size int) Local {
	rng := rand.New(rand.NewPCG(5, 8))
	phase := make([]float64, size)
	for f := range phase {
		phase[f] = 2 * rng.Float64()
	}
	l = byPart(l, phase...)
	l.Variance = func(dst []float64, sigma float64) {
		for f, p := range phase {
			dst[f] = math.Exp(0.7 * math.Sin(math.Log(sigma)+3*p))
		}
	}
	return l
}

// Whatever the variances, a method begun exactly is of its order on a law that is not normal; half the slope of a line
// is of order 2.
func TestLocalOrderOfConvergence(t *testing.T) {
	const size = 3
	flow := ofCoordinates(solvertest.Crossed(size).Flow)
	sch, xi := schedule.Isotropic(path(t, []float64{0, 1}, []float64{0.02, 4})), state{{0.4}, {-1.1}, {0.8}}
	same := ofPaths(t, slices.Repeat([]*schedule.Path{sch.At(0, 0)}, size)...) // for each coordinate
	everyLocal(t, func(t *testing.T, l Local) {
		l.LowerOrderFinal = false
		planOf := func(steps int) *Plan {
			sigma := make([]float64, steps+1)
			for i := range sigma {
				sigma[i] = sch.Sigma(0, float64(steps-i)/float64(steps))
			}
			p, err := wavy(l, size).On(sigma).Plan(sch)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		got := slope(t, flow, xi, planOf, l.Order-1, func(x state, times []float64) []state {
			return integrate(same, flow, x, times)
		})
		if math.Abs(got-float64(l.Order)) > 0.2 {
			t.Errorf("order %.3f, want %v", got, l.Order)
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
	everyLocal(t, func(t *testing.T, l Local) {
		l.Coordinates = &Coordinates{Bands: bands, Axes: [][]float64{nil}}
		l.Variance = func(dst []float64, _ float64) { copy(dst, byBand) }
		got, want := localPlan(t, l, 5), localPlan(t, byPart(l, byFrequency...), 5)
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
	everyLocal(t, func(t *testing.T, l Local) {
		for i, st := range localPlan(t, byPart(l, 1e-3, 1, 1e3, 1e9), 9).Stages {
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

// What begins in the middle is what local makes of the levels that are left, and no more of it is told than differs.
func TestTailsOfLocal(t *testing.T) {
	everyLocal(t, func(t *testing.T, l Local) {
		l = wavy(l, 3)
		whole := l.On([]float64{9.3, 7, 3.4, 2.6, 1.9, 1.2, 0.2})
		for k, tail := range l.Tails(whole) {
			want := l.On(whole.Sigma[k+1:]).Weights
			got := Weights{
				append(slices.Clone(tail.Alpha), whole.Alpha[k+1+len(tail.Alpha):]...),
				append(slices.Clone(tail.Beta), whole.Beta[k+1+len(tail.Beta):]...),
			}
			if diff := cmp.Diff(want, got); diff != "" || len(tail.Alpha) > 3 {
				t.Errorf("from step %d, %d weights: %s", k+1, len(tail.Alpha), diff)
			}
		}
	})
}

// Where given weights reach back before a tail, it takes steps of order 2.
func TestShortTails(t *testing.T) {
	l := wavy(Local{Order: 2, LowerOrderFinal: true}, 3)
	whole := l.On([]float64{9.3, 7, 3.4, 2.6, 1.9, 0.2})
	tails := l.Tails(whole)
	for i := range whole.Alpha { // weights of another sampler
		for f := range whole.Alpha[i] {
			whole.Alpha[i][f] += 0.1
		}
	}
	for k, tail := range l.ShortTails(whole) {
		diff := cmp.Diff(tails[k].Alpha[:min(1, len(tails[k].Alpha))], tail.Alpha)
		if k < 3 && diff != "" || k == 3 && len(tail.Alpha) > 0 { // the last step is of order 1
			t.Errorf("from step %d: %s", k+1, diff)
		}
	}
}
