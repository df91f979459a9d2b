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

// TestDescentReachesTheGeodesic trains a schedule under an optimal network: Adam on θ
// ends where the geodesic, which needs no descent, says that the best schedule is.
func TestDescentReachesTheGeodesic(t *testing.T) {
	const T, g0 = 25.0, 1e-6
	b := basis.None(2, 2)
	net, d := gaussian(t, b, []float64{0.04}, 4096)
	m, w := onDevice(t, net, b)
	for _, mode := range []string{"backprop", "full"} {
		t.Run(mode, func(t *testing.T) {
			r := start(t, Config{
				Stage: Isotropic, TrainNetwork: refuse(), T: T, G0: g0, Knots: 16, Batch: 64, Kimg: 9.6, ScheduleLR: 0.05,
				ScheduleLRWarmup: 0.64, Estimator: mode,
			}, Sources{Dataset: d, Analytic: net})
			before := r.Schedule()
			rows := step(t, r, 150)
			best, err := passes.MakeGeodesic(t.Context(), m, w, d, passes.GeodesicSettings{T: T, G0: g0, Knots: 16, Samples: 64})
			if err != nil {
				t.Fatal(err)
			}
			c, err := passes.Compare(t.Context(), m, w, d, []*schedule.Schedule{before, r.Schedule(), best.Schedule},
				passes.EvaluateSettings{Points: 64, Samples: 32})
			if err != nil {
				t.Fatal(err)
			}
			from, _ := c.Energy(0)
			to, _ := c.Energy(1)
			least, stderr := c.Energy(2)
			if from < 1.2*least {
				t.Fatalf("the start, E = %v, is too near the best, %v, to test a descent", from, least)
			}
			if to > 1.05*least || to < best.Reports[0].Bound-4*stderr {
				t.Errorf("E falls from %v to %v; the geodesic has %v ± %v, the bound is %v", from, to, least, stderr,
					best.Reports[0].Bound)
			}
			if last := rows[len(rows)-1]; !math.IsNaN(last.GradNorm) || !math.IsNaN(last.LR) || !(last.ScheduleGradStderr > 0) {
				t.Errorf("last row %+v", last)
			}
		})
	}
}

// TestAnisotropicDescent: the stage starts with all g_j equal, at the energy of the
// isotropic schedule, and leaves it for a lower one where the data's variance differs
// between the subspaces.
func TestAnisotropicDescent(t *testing.T) {
	const T, g0 = 25.0, 1e-6
	b, err := basis.DCT(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	net, d := gaussian(t, b, []float64{0.2, 0.002}, 4096)
	m, w := onDevice(t, net, b)
	iso, err := passes.MakeGeodesic(t.Context(), m, w, d, passes.GeodesicSettings{T: T, G0: g0, Knots: 16})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{
		Stage: Anisotropic, Schedule: "iso", Family: schedule.Family{
			Basis: "dct",
			K:     1,
		}, TrainNetwork: refuse(), Batch: 64, Kimg: 6.4,
		ScheduleLR: 0.05,
	}, Sources{Dataset: d, Analytic: net, Schedule: iso.Schedule})
	first := r.Schedule()
	step(t, r, 100)
	c, err := passes.Compare(t.Context(), m, w, d, []*schedule.Schedule{iso.Schedule, first, r.Schedule()},
		passes.EvaluateSettings{Points: 64, Samples: 16})
	if err != nil {
		t.Fatal(err)
	}
	if diff, _ := c.Difference(0, 1); diff != 0 {
		t.Errorf("the start differs from the isotropic schedule by %v", diff)
	}
	gain, stderr := c.Difference(0, 2)
	if gain < 4*stderr {
		t.Errorf("gain %v ± %v", gain, stderr)
	}
	g, gdot := make([]float64, 2), make([]float64, 2)
	r.Schedule().Eval(0, T/2, g, gdot)
	if g[0] == g[1] {
		t.Errorf("g = %v at T/2: nothing moved apart", g)
	}
}

// TestPredictionIsReached: what is predicted is what training then gains, up to the
// errors of both and the price of finitely many knots.
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
	c, err := passes.Compare(t.Context(), m, w, d, []*schedule.Schedule{iso.Schedule, r.Schedule()},
		passes.EvaluateSettings{Points: 64, Samples: 64, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	from, _ := c.Energy(0)
	saved, stderr := c.Difference(0, 1)
	gain, gainStderr := saved/from, stderr/from
	p := predicted[0]
	if p.Basis != "dct" || p.PerClass || !slices.Equal(p.Cuts, []int{1}) || p.Gain < 0.05 {
		t.Fatalf("predicted %+v: too little to test", p)
	}
	if math.Abs(gain-p.Gain) > 3*math.Hypot(gainStderr, p.GainStderr)+0.01 {
		t.Errorf("training gains %.4f ± %.4f, predicted %.4f ± %.4f", gain, gainStderr, p.Gain, p.GainStderr)
	}
}
