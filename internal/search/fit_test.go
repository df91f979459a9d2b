package search

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/internal/testing/solvertest"
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

func fitSettings(nfe, samples int) FitSettings {
	return FitSettings{
		Solver: solver.Settings{Solver: solver.LocalName, NFE: nfe}, Samples: samples, Label: none, Report: func(int, int) {},
	}
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
func samples(t *testing.T, m sampler.Ensemble, s *schedule.Schedule, set solver.Settings, n int) (out sampler.Samples) {
	t.Helper()
	plan, err := solver.New(set, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	of := sampler.Trajectories{Plan: plan, Seed: 5, Labels: slices.Repeat([]int32{-1}, n)}
	if err := m.Follow(t.Context(), of, &out); err != nil {
		t.Fatal(err)
	}
	return out
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
	s := edm(t, 10)
	fitted, errs, err := Fit(t.Context(), m, s, wrong, fitSettings(3, 32))
	if err != nil {
		t.Fatal(err)
	}
	if !(errs.Fitted < errs.Local/5) {
		t.Errorf("fitted coefficients err by %g, local ones by %g", errs.Fitted, errs.Local)
	}
	set := solver.Settings{Solver: solver.FittedName, NFE: 3, Statistics: wrong, Fitted: fitted}
	got := samples(t, m, s, set, 20)
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
		for f, v := range true0 {
			end := fitted.Sigma[len(fitted.Sigma)-1]
			x[f] *= math.Sqrt((v + end*end) / (v + 100))
		}
		transform.Inverse(x, x)
		for k, v := range x {
			sum += math.Pow(v-float64(got[i*len(x)+k]), 2)
		}
	}
	if off := math.Sqrt(sum / float64(len(got))); off > 0.01 {
		t.Errorf("samples are off the exact flow by %g", off)
	}
}

// On a mixture, whose flow is not linear, fitted coefficients are closer to converged samples than those of local, on
// latents that neither the fit nor its own judgement has seen.
func TestFittedBeatLocal(t *testing.T) {
	m := ensembletest.Smooth(4, 3)
	of, s := statistics(t, m), edm(t, 10)
	done, total := 0, 0
	set := fitSettings(4, 64)
	set.Report = func(d, all int) {
		if d < done || d > all || total != 0 && all != total {
			t.Errorf("progress %d of %d after %d of %d", d, all, done, total)
		}
		done, total = d, all
	}
	fitted, errs, err := Fit(t.Context(), m, s, of, set)
	if err != nil {
		t.Fatal(err)
	}
	if done == 0 || done != total {
		t.Errorf("progress ends with %d of %d", done, total)
	}
	converged := samples(t, m, s, solver.Settings{Solver: "heun", Steps: 64}, 64)
	off := func(set solver.Settings) float64 { return difference(converged, samples(t, m, s, set, 64)) }
	localErr := off(solver.Settings{Solver: solver.LocalName, NFE: 4, Statistics: of})
	fittedErr := off(solver.Settings{Solver: solver.FittedName, NFE: 4, Statistics: of, Fitted: fitted})
	if !(fittedErr < localErr) {
		t.Errorf("fitted coefficients err by %g, local ones by %g", fittedErr, localErr)
	}
	for _, q := range [][2]float64{{errs.Local, localErr}, {errs.Fitted, fittedErr}} {
		if math.Abs(math.Log(q[0]/q[1])) > math.Log(1.5) { // each of 64 samples
			t.Errorf("the fit says that it errs by %g, and it errs by %g", q[0], q[1])
		}
	}
	again, _, err := Fit(t.Context(), m, s, of, fitSettings(4, 64))
	if err != nil || !reflect.DeepEqual(again, fitted) {
		t.Errorf("the same fit gives other coefficients: %v", err)
	}
}

func TestFitEndsWithItsContext(t *testing.T) {
	m := ensembletest.Smooth(4, 1)
	ctx, cancel := context.WithCancel(t.Context())
	set := fitSettings(3, 8)
	set.Report = func(int, int) { cancel() }
	if _, _, err := Fit(ctx, m, edm(t, 10), statistics(t, m), set); !errors.Is(err, context.Canceled) {
		t.Error(err)
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
	fit := func(s *local.Statistics, isotropic bool) (*solver.Fitted, *FitErrors) {
		set := fitSettings(4, 8)
		set.Isotropic = isotropic
		fitted, missed, err := Fit(t.Context(), network, edm(t, 10), s, set)
		if err != nil {
			t.Fatal(err)
		}
		return fitted, missed
	}
	inBands := solvertest.Normal(t, bands, wrong)
	got, missed := fit(inBands, false)
	want, _ := fit(solvertest.Normal(t, basis.Bands{H: 4, W: 4, C: 2}, byFrequency), false)
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
	if !(missed.Fitted < 1e-2*missed.Local) {
		t.Errorf("fitted coefficients miss by %v, those begun at by %v", missed.Fitted, missed.Local)
	}
	one, rough := fit(inBands, true)
	if !(rough.Fitted > 10*missed.Fitted) || !(rough.Fitted < rough.Local) {
		t.Errorf("one set of coefficients misses by %+v, one for each band by %+v", rough, missed)
	}
	for i, alpha := range one.Alpha {
		if slices.Max(alpha) != slices.Min(alpha) {
			t.Errorf("step %d: an isotropic fit has the weights %v", i, alpha)
		}
	}
}
