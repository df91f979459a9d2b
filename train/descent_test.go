package train

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/traintest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

// TestPredictionIsReached: what is predicted is what training then gains, up to the errors of both and the price of
// finitely many knots.
func TestPredictionIsReached(t *testing.T) {
	const T, g0 = 25.0, 1e-6
	b, err := basis.DCT(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	variances := []float64{0.05, 0.0005}
	net, d := gaussian(t, b, variances, 4096)
	whole, w := onDevice(t, traintest.Whole(t, b, variances), nil)
	predicted, err := passes.Predict(t.Context(), whole, w, d, passes.PredictSettings{
		T: T, G0: g0, Samples: 64,
		Bases: []string{"dct"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, w := onDevice(t, net, b)
	iso, err := passes.MakeGeodesic(t.Context(), whole, w, d, passes.GeodesicSettings{
		T: T, G0: g0, Knots: 32,
		Samples: 64,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{
		Stage: Anisotropic, Schedule: "iso", Family: schedule.Family{
			Basis: "dct",
			K:     1,
		}, TrainNetwork: refuse(), Batch: 128, Kimg: 38.4,
		ScheduleLR: 0.05,
	}, Sources{Dataset: d, Analytic: net, Schedule: iso.Schedule})
	step(t, r, 300)
	same, err := iso.Schedule.Expand(schedule.Family{Basis: "dct", K: 1}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	const points = 64
	differences, from := make([]float64, points), 0.0 // by part of [0, T]
	for i, s := range []*schedule.Schedule{same, r.Schedule()} {
		rows, err := passes.Evaluate(t.Context(), m, w, d, s, passes.EvaluateSettings{Points: points, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for k, row := range rows {
			if i == 0 {
				from += row.Loss
				differences[k%points] += row.Loss
			} else {
				differences[k%points] -= row.Loss
			}
		}
	}
	var saved, squares float64
	for p, d := range differences {
		saved += d
		if p%2 == 1 { // neighbours differ by little more than their errors
			squares += math.Pow(d-differences[p-1], 2)
		}
	}
	gain, gainStderr := saved/from, math.Sqrt(squares)/from
	p := predicted[0]
	if p.Basis != "dct" || p.PerClass || !slices.Equal(p.Cuts, []int{1}) || p.Gain < 0.05 {
		t.Fatalf("predicted %+v: too little to test", p)
	}
	if math.Abs(gain-p.Gain) > 3*math.Hypot(gainStderr, p.GainStderr)+0.01 {
		t.Errorf("training gains %.4f ± %.4f, predicted %.4f ± %.4f", gain, gainStderr, p.Gain, p.GainStderr)
	}
}
