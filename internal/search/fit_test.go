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
	"github.com/anisoflight/anisoflight/schedule"
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
