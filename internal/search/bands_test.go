package search

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/internal/testing/solvertest"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

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
