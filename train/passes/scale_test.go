package passes

import (
	"errors"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	normal "github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// TestScaleOfGaussian: data of variance v in each of four directions and mean 0 have 4 v in all. A start from noise of
// variance T misses (1 − √(T/(v+T)))² of it, which solves to T = v a²/(1 − a²) with a = 1 − √part.
func TestScaleOfGaussian(t *testing.T) {
	const v = 0.04
	_, d := gaussian(t, basis.None(2, 2), []float64{v}, 4096)
	var T, c float64
	if err := DefaultScale(t.Context(), &T, &c, d, schedule.Range{}); err != nil {
		t.Fatal(err)
	}
	a := 1 - math.Sqrt(horizon)
	within(t, "c", c, 4*v, 0.1*4*v)
	within(t, "T", T, v*a*a/(1-a*a), 0.1*T)
}

// TestEndByEvaluations: of a spectrum that falls as a power of the frequency, the end of time is the least of a scan by
// the bench. More evaluations never choose a lower one, and it stays within the network's noise levels.
func TestEndByEvaluations(t *testing.T) {
	law := &normal.Spectrum{H: 8, W: 8, C: 1}
	for f := range 64 {
		law.Directions = append(law.Directions, normal.Direction{Variance: 20 * math.Pow(1+float64(f), -1.5)})
	}
	law.Directions[0].Mean = 2
	for _, point := range []string{solver.Endpoint, solver.Midpoint} {
		before := 0.0
		for _, nfe := range []int{3, 5, 9, 10, 17, 35, 101} {
			set := GeodesicSettings{Sampler: solver.Settings{NFE: nfe, SecondPoint: point}, C: law.Variance()}
			got, err := set.end(t.Context(), law, schedule.Range{})
			if err != nil {
				t.Fatal(err)
			}
			want, least := 0.0, math.Inf(1)
			for T := 6400.0; T > law.Horizon(0.3); T /= 2 {
				var samples []schedule.Sample
				for _, sigma := range noiseLevels(160, 1e-9, T) {
					samples = append(samples, schedule.ResidualSample(sigma, law.Residual(sigma), 0, law.Variance()))
				}
				path, _, err := schedule.Geodesic(samples, DefaultOrder, T, 1e-9, schedule.DefaultKnots)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := solver.New(solver.Settings{Solver: "heun", SecondPoint: point, NFE: nfe}, schedule.Isotropic(path), 0)
				if err != nil {
					t.Fatal(err)
				}
				report, err := law.Bench(basis.None(8, 8), plan)
				if err != nil {
					t.Fatal(err)
				}
				if report.W2 < least {
					want, least = T, report.W2
				}
			}
			if got != want || got < before {
				t.Errorf("%s, %d evaluations: T = %v, want %v, and no less than %v", point, nfe, got, want, before)
			}
			before = got
			known := schedule.Range{Min: 0.01, Max: 1.5}
			if got, err := set.end(t.Context(), law, known); err != nil || !known.Holds(got) {
				t.Errorf("%s, %d evaluations: T = %v beyond the network's noise levels, error %v", point, nfe, got, err)
			}
		}
		if before < 400 {
			t.Errorf("%s: T = %v of many evaluations, want it to rise", point, before)
		}
	}
	flat := &normal.Spectrum{H: 1, W: 1, C: 1, Directions: make([]normal.Direction, 1)}
	_, err := GeodesicSettings{Sampler: solver.Settings{NFE: 9}}.end(t.Context(), flat, schedule.Range{})
	if e, ok := errors.AsType[*setting.Error](err); !ok || e.Field != "dataset" {
		t.Errorf("images that are all alike: %v", err)
	}
}

// TestDefaultScale: what is given stays; the end of time lies within the network's noise levels.
func TestDefaultScale(t *testing.T) {
	_, d := gaussian(t, basis.None(2, 2), []float64{0.04}, 256)
	law, err := MeasureSpectrum(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	s := ScaleOf(law)
	for _, c := range []struct {
		T, c  float64
		known schedule.Range
		wantT float64
		wantC float64
	}{
		{wantT: s.T, wantC: s.C},
		{T: 3, wantT: 3, wantC: s.C},
		{c: 2, wantT: s.T, wantC: 2},
		{known: schedule.Range{Min: 0.01, Max: 0.5}, wantT: 0.25, wantC: s.C},
	} {
		T, got := c.T, c.c
		if err := DefaultScale(t.Context(), &T, &got, d, c.known); err != nil || T != c.wantT || got != c.wantC {
			t.Errorf("%+v: T %v, c %v, error %v", c, T, got, err)
		}
	}
	_, alone := gaussian(t, basis.None(2, 2), []float64{0.04}, 1)
	var T, c float64
	err = DefaultScale(t.Context(), &T, &c, alone, schedule.Range{})
	if e, ok := errors.AsType[*setting.Error](err); !ok || e.Field != "c" {
		t.Errorf("one image: T %v, c %v, error %v", T, c, e)
	}
}
