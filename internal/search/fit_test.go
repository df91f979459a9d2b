package search

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// edm returns EDM's schedule from a noise level.
func edm(t *testing.T, sigma float64) *schedule.Schedule {
	t.Helper()
	s, err := schedule.EDM(sigma*sigma, schedule.DefaultG0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fitted returns coefficients fitted to n trajectories of a network from a noise level, in the levels of local on EDM's
// rule, and those that the fit begins with.
func fitted(t *testing.T, m sampler.Ensemble, sigma float64, local solver.Local, steps, n int) *fitter {
	t.Helper()
	f := &fitter{
		ctx: t.Context(), network: m, schedule: edm(t, sigma), local: local, samples: n,
		trajectories: sampler.Trajectories{Seed: firstSeed(0), Labels: slices.Repeat([]int32{-1}, 2*n)},
	}
	levels := schedule.EDMLevels(sigma, schedule.DefaultSigmaMin, schedule.EDMRho, steps+1)
	if err := f.converge(levels); err != nil {
		t.Fatal(err)
	}
	if err := f.fitAll(levels); err != nil {
		t.Fatal(err)
	}
	return f
}

func statistics(t *testing.T, m sampler.Ensemble) *local.Statistics {
	t.Helper()
	of, err := m.Statistics(t.Context(), schedule.DefaultT, nil, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// samples returns those of n seeds that no fit has seen.
func samples(t *testing.T, m sampler.Ensemble, plan *solver.Plan, n int) (out sampler.Samples) {
	t.Helper()
	of := sampler.Trajectories{Plan: plan, Seed: 5, Labels: slices.Repeat([]int32{-1}, n)}
	if err := m.Follow(t.Context(), of, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// along returns the plan of coefficients from a noise level.
func along(t *testing.T, k solver.Coefficients) *solver.Plan {
	t.Helper()
	plan, err := k.Plan(edm(t, k.Sigma[0]))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// off returns the root mean square difference of a fit's samples, and of those that it begins with, to converged ones.
func off(t *testing.T, m sampler.Ensemble, f *fitter) (fitted, begun float64) {
	t.Helper()
	g := *f // with the latents of samples
	g.at, g.trajectories = nil, sampler.Trajectories{Seed: 5, Labels: slices.Repeat([]int32{-1}, 64)}
	if err := g.converge(f.fitted.Sigma); err != nil {
		t.Fatal(err)
	}
	converged := g.states.X[len(g.states.X)-1]
	return difference(converged, samples(t, m, along(t, f.fitted), 64)),
		difference(converged, samples(t, m, along(t, f.base), 64))
}

func difference(a, b []float32) float64 {
	var sum float64
	for i, v := range a {
		sum += (float64(v) - float64(b[i])) * (float64(v) - float64(b[i]))
	}
	return math.Sqrt(sum / float64(len(a)))
}

// The flow of a centred normal law takes every coordinate from x to x √((λ + σ′²)/(λ + σ²)). Coefficients fitted to it
// do so, whatever the statistics that they are fitted around.
func TestFitRecoversTheFlowOfANormalLaw(t *testing.T) {
	m := ensembletest.Smooth(4, 1)
	true0 := statistics(t, m).At(0).Variance
	wrong := statistics(t, ensembletest.Smooth(4, 3)) // of another law
	f := fitted(t, m, 10, wrong.Sampler(0), 3, 32)
	if own, begun := off(t, m, f); !(own < begun/5) {
		t.Errorf("fitted coefficients err by %g, local ones by %g", own, begun)
	}
	got := samples(t, m, along(t, f.fitted), 20)
	// The start is noise, N(0, σ²).
	transform := wrong.Bands().Frequencies(wrong.At(0).Axes)
	x := make([]float64, transform.Size())
	var sum float64
	for i := range 20 {
		latent := make([]float32, len(x))
		sampler.DrawLatent(5+uint64(i), latent)
		for k, v := range latent {
			x[k] = 10 * float64(v)
		}
		transform.Forward(x, x)
		for at, v := range true0 {
			end := f.fitted.Sigma[len(f.fitted.Sigma)-1]
			x[at] *= math.Sqrt((v + end*end) / (v + 100))
		}
		transform.Inverse(x, x)
		for k, v := range x {
			sum += math.Pow(v-float64(got[i*len(x)+k]), 2)
		}
	}
	if far := math.Sqrt(sum / float64(len(got))); far > 0.01 {
		t.Errorf("samples are off the exact flow by %g", far)
	}
}

// On a mixture, whose flow is not linear, fitted coefficients are closer to converged samples than those of local, on
// latents that the fit has not seen.
func TestFittedBeatLocal(t *testing.T) {
	m := ensembletest.Smooth(4, 3)
	local := statistics(t, m).Sampler(0)
	f := fitted(t, m, 10, local, 4, 64)
	if own, begun := off(t, m, f); !(own < begun) {
		t.Errorf("fitted coefficients err by %g, local ones by %g", own, begun)
	}
	if again := fitted(t, m, 10, local, 4, 64); !reflect.DeepEqual(again.fitted, f.fitted) {
		t.Error("the same fit gives other coefficients")
	}
}

// Of a normal law whose variance depends on the band alone, a band gets the coefficients that each of its frequencies
// gets, and they lead to the converged samples, whatever the variances that the fit begins at. A fit of one set for all
// parts cannot.
func TestFitInBands(t *testing.T) {
	bands := basis.Bands{H: 4, W: 4, C: 2, N: 4}
	index, _ := bands.Index()
	size, transform := bands.H*bands.W*bands.C, bands.Frequencies(nil)
	network := &ensembletest.Mixture{Basis: basis.None(4, 4), Settings: mixturetest.Settings{
		Height: 4, Width: 4, Channels: 2, Weights: []float64{1}, Means: [][]float64{make([]float64, size)},
		Covs: [][]float64{make([]float64, size*size)},
	}}
	wrong := make([]float64, bands.Parts())
	for f := range size {
		part := index[f/2]*2 + f%2
		variance := 2 / math.Pow(float64(1+part), 2)
		wrong[part] = 0.3 * variance
		unit := make([]float64, size)
		unit[f] = 1
		transform.Inverse(unit, unit)
		for a, x := range unit {
			for b, y := range unit {
				network.Covs[0][a*size+b] += variance * x * y
			}
		}
	}
	var byFrequency []float64
	for _, b := range index {
		byFrequency = append(byFrequency, wrong[b*2:b*2+2]...)
	}
	fit := func(of *local.Statistics) *fitter { return fitted(t, network, 10, of.Sampler(0), 4, 8) }
	inBands := fit(ensembletest.NormalStatistics(t, bands, wrong))
	byFrequencies := fit(ensembletest.NormalStatistics(t, basis.Bands{H: 4, W: 4, C: 2}, byFrequency))
	got, want := inBands.fitted, byFrequencies.fitted
	for i := range want.Alpha {
		for f := range want.Alpha[i] {
			part := index[f/2]*2 + f%2
			a := append([]float64{got.Alpha[i][part]}, got.Beta[i][part]...)
			for k, v := range append([]float64{want.Alpha[i][f]}, want.Beta[i][f]...) {
				if !(math.Abs(a[k]-v) < 1e-3*(1+math.Abs(v))) {
					t.Errorf("stage %d, coordinate %d: weights %v, its own are %v and %v", i, f, a, want.Alpha[i][f], want.Beta[i][f])
					break
				}
			}
		}
	}
	missed, begun := off(t, network, inBands)
	if !(missed < 1e-2*begun) {
		t.Errorf("fitted coefficients miss by %v, those begun at by %v", missed, begun)
	}
	one := fitted(t, network, 10, solver.Local{Order: 2, LowerOrderFinal: true}, 4, 8)
	if rough, plain := off(t, network, one); !(rough > 10*missed) || !(rough < plain) || len(one.fitted.Alpha[0]) != 1 {
		t.Errorf("one set of coefficients misses by %v, one for each band by %v, DPM-Solver++ by %v", rough, missed, plain)
	}
}
