package passes

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
)

// TestGainsOfANormalLaw: the exact denoiser of a normal law is a Wiener filter in each of its frequencies, q = λ/(λ +
// σ²), and in each band of frequencies that are alike, so that the law's own variances come back at every noise level.
func TestGainsOfANormalLaw(t *testing.T) {
	const low, high = 0.04, 0.004
	b, err := basis.DCT(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	net := whole(t, b, []float64{low, high})
	_, d := gaussian(t, b, []float64{low, high}, 2048)
	m, w := onDevice(t, net, basis.None(2, 2))
	set := GeodesicSettings{T: 25, G0: 1e-6, Points: 12, Samples: 256, Seed: 1}
	s, err := MeasureStatistics(t.Context(), m, w, d, set)
	if err != nil {
		t.Fatal(err)
	}
	if b := s.Bands(); b != local.BandsOf(2, 2, 1) || s.Rows() != 1 || len(s.Sigma()) != 12 {
		t.Fatalf("%d rows of %d levels in %+v", s.Rows(), len(s.Sigma()), b)
	}
	for p, sigma := range s.Sigma() {
		for f, q := range s.At(0).Gain[p] {
			v := high
			if f == 0 {
				v = low
			}
			want := v / (v + sigma*sigma)
			within(t, "gain", q, want, 5*math.Sqrt(2./256)*want)
		}
	}
	found := make([]float64, s.Size())
	for _, sigma := range []float64{0.3, 1} {
		s.Variance(found, 0, sigma)
		for f, v := range found {
			want := high
			if f == 0 {
				want = low
			}
			within(t, "ln λ", math.Log(v), math.Log(want), 0.5)
		}
	}
}

// TestGainsArePooled: few samples a level are pooled until a gain is the mean of enough.
func TestGainsArePooled(t *testing.T) {
	for _, c := range []struct{ points, samples, want int }{{160, 24, 40}, {160, 200, 160}, {10, 1, 2}, {7, 48, 3}} {
		set := GeodesicSettings{T: 25, G0: 1e-6, Points: c.points, Samples: c.samples}
		levels := set.gainLevels()
		if len(levels) != c.want {
			t.Errorf("%d points of %d samples: %d levels, want %d", c.points, c.samples, len(levels), c.want)
		}
		for i := 1; i < len(levels); i++ {
			if levels[i] <= levels[i-1] {
				t.Errorf("levels %v", levels)
			}
		}
	}
}
