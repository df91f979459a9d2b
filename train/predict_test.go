package train

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

const predictT, predictG0 = 25.0, 1e-6

// exactEnergy is (∫√F dg)² where directions have these variances: the residual of each
// is Var(ε | x) = λ/(λ + g).
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

// TestPredict: on a Gaussian that is diagonal in the DCT the best energies of every cut
// are known. Six numbers within four standard errors: false alarms below 1e-3 for a new
// seed. A basis that gains nothing is not said to gain beyond its error.
func TestPredict(t *testing.T) {
	b, err := basis.DCTBands(4, 4, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	variances := []float64{0.05, 0.005, 0.0005}
	_, d := gaussian(t, b, variances, 4096)
	m, w := onDevice(t, whole(t, b, variances), nil)
	got, err := Predict(t.Context(), m, w, d, PredictSettings{T: predictT, G0: predictG0, Samples: 64, Seed: 5})
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
			t.Errorf("%s: energy %.4f ± %.4f, gain %.4f ± %.4f; want %.4f, %.4f", name(p), p.Energy, p.Stderr, p.Gain, p.GainStderr, e, 1-e/iso)
		}
	}
	if seen != len(want) || name(got[0]) != "dct [1 2]" && got[0].Gain > 1-want["dct [1 2]"]/iso+4*got[0].GainStderr {
		t.Errorf("%d of the known predictions; the best is %+v", seen, got[0])
	}
}

// TestPredictionIsReached: what is predicted is what training then gains, up to the
// errors of both and the price of finitely many knots.
func TestPredictionIsReached(t *testing.T) {
	b, err := basis.DCT(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	variances := []float64{0.05, 0.0005}
	net, d := gaussian(t, b, variances, 4096)
	plain, w := onDevice(t, whole(t, b, variances), nil)
	predicted, err := Predict(t.Context(), plain, w, d, PredictSettings{T: predictT, G0: predictG0, Samples: 64, Bases: []string{"dct"}})
	if err != nil {
		t.Fatal(err)
	}
	m, w := onDevice(t, net, b)
	iso, err := MakeGeodesic(t.Context(), plain, w, d, GeodesicSettings{T: predictT, G0: predictG0, Knots: 32, Samples: 64})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{
		Stage: Anisotropic, Schedule: "iso", Family: schedule.Family{Basis: "dct", K: 1}, TrainNetwork: refuse(), Batch: 128, Kimg: 38.4,
		ScheduleLR: 0.05,
	}, Sources{Dataset: d, Analytic: net, Schedule: iso.Schedule})
	step(t, r, 300)
	c, err := Compare(t.Context(), m, w, d, []*schedule.Schedule{iso.Schedule, r.Schedule()}, EvaluateSettings{Points: 64, Samples: 64, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	from, _ := c.Energy(0)
	saved, stderr := c.Difference(0, 1)
	gain, gainStderr := saved/from, stderr/from
	p := predicted[0]
	if name(p) != "dct [1]" || p.Gain < 0.05 {
		t.Fatalf("predicted %+v: too little to test", p)
	}
	if math.Abs(gain-p.Gain) > 3*math.Hypot(gainStderr, p.GainStderr)+0.01 {
		t.Errorf("training gains %.4f ± %.4f, predicted %.4f ± %.4f", gain, gainStderr, p.Gain, p.GainStderr)
	}
}

func TestPredictRefuses(t *testing.T) {
	b := basis.None(2, 2)
	net, d := gaussian(t, b, []float64{0.04}, 16)
	m, w := onDevice(t, net, b)
	for field, set := range map[string]PredictSettings{
		"dataset": {Bases: []string{"pca_per_class"}}, // it has one class
		"T":       {T: -1}, "g0": {G0: 1e9}, "c": {C: -1}, "points": {Points: 3}, "samples": {Samples: 1}, "bases": {Bases: []string{"dst"}},
	} {
		var bad *ConfigError
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
