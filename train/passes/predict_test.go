package passes

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

const predictT, predictG0 = 25.0, 1e-6

// exactEnergy is (∫√F dg)² where directions have these variances: the residual of each is Var(ε | x) = λ/(λ + g).
func exactEnergy(t *testing.T, variances []float64) float64 {
	t.Helper()
	var sigma, residual []float64
	for p := range 400 {
		s := lowestSigma * math.Pow(5/lowestSigma, float64(p)/399)
		sum := 0.0
		for _, v := range variances {
			sum += v / (v + s*s)
		}
		sigma, residual = append(sigma, s), append(residual, sum)
	}
	e, err := schedule.LeastEnergy(sigma, residual, 1, predictG0, predictT)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPredict: on a Gaussian that is diagonal in the DCT the best energies of every cut are known. Six numbers within
// four standard errors: false alarms below 1e-3 for a new seed. A basis that gains nothing is not said to gain beyond
// its error.
func TestPredict(t *testing.T) {
	b, err := basis.DCTBands(4, 4, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	variances := []float64{0.05, 0.005, 0.0005}
	_, d := gaussian(t, b, variances, 4096)
	m, w := onDevice(t, whole(t, b, variances), nil)
	got, err := Predict(t.Context(), m, w, d, PredictSettings{T: predictT, G0: predictG0, C: 1, Samples: 64, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	directions := func(from, to int) []float64 { // of the bands 1, 3 and 12 dimensions large
		var out []float64
		for band, n := range []int{1, 3, 12} {
			for range n {
				if band >= from && band < to {
					out = append(out, variances[band])
				}
			}
		}
		return out
	}
	iso := exactEnergy(t, directions(0, 3))
	want := map[string]float64{
		"none []":   iso,
		"dct [1]":   exactEnergy(t, directions(0, 1)) + exactEnergy(t, directions(1, 3)),
		"dct [2]":   exactEnergy(t, directions(0, 2)) + exactEnergy(t, directions(2, 3)),
		"dct [1 2]": exactEnergy(t, directions(0, 1)) + exactEnergy(t, directions(1, 2)) + exactEnergy(t, directions(2, 3)),
	}
	seen := 0
	for i, p := range got {
		if i > 0 && p.Gain > got[i-1].Gain {
			t.Errorf("%v after %v", p, got[i-1])
		}
		e, ok := want[name(p)]
		if !ok {
			continue
		}
		seen++
		if math.Abs(p.Energy-e) > 4*p.Stderr || p.Stderr > 0.05*e || math.Abs(p.Gain-(1-e/iso)) > 4*p.GainStderr+1e-3 {
			t.Errorf("%s: energy %.4f ± %.4f, gain %.4f ± %.4f; want %.4f, %.4f", name(p), p.Energy, p.Stderr, p.Gain,
				p.GainStderr, e, 1-e/iso)
		}
	}
	if seen != len(want) || name(got[0]) != "dct [1 2]" && got[0].Gain > 1-want["dct [1 2]"]/iso+4*got[0].GainStderr {
		t.Errorf("%d of the known predictions; the best is %+v", seen, got[0])
	}
}

func TestPredictRefuses(t *testing.T) {
	b := basis.None(2, 2)
	net, d := gaussian(t, b, []float64{0.04}, 16)
	m, w := onDevice(t, net, b)
	for field, set := range map[string]PredictSettings{
		"dataset": {Bases: []string{"pca_per_class"}}, // it has one class
		"T":       {T: -1}, "g0": {G0: 1e9}, "c": {C: -1}, "points": {Points: 3}, "samples": {Samples: 1},
		"bases": {Bases: []string{"dst"}},
	} {
		var bad *setting.Error
		if _, err := Predict(t.Context(), m, w, d, set); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func name(p Prediction) string {
	text := fmt.Sprint(p.Basis, " ", p.Cuts)
	if p.PerClass {
		return text + " per class"
	}
	return text
}
