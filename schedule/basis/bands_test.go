package basis

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// The bands of a few planes, which the Python package's tests have as well. Of large planes it is a sum.
func TestBandsAreTheFormulas(t *testing.T) {
	for _, c := range []struct {
		bands Bands
		want  []int
	}{
		{Bands{2, 3, 1, 0}, []int{0, 1, 2, 3, 4, 5}},
		{Bands{2, 2, 1, 1}, []int{0, 0, 0, 0}},
		{Bands{1, 1, 1, 8}, []int{0}},
		{Bands{1, 4, 2, 3}, []int{0, 1, 2, 2}},
		{Bands{4, 6, 3, 5}, []int{
			0, 1, 2, 3, 3, 4,
			1, 2, 2, 3, 4, 4,
			3, 3, 3, 4, 4, 4,
			4, 4, 4, 4, 4, 4,
		}},
	} {
		if got, count := c.bands.Index(); !slices.Equal(got, c.want) || count != slices.Max(c.want)+1 {
			t.Errorf("%+v: %d bands %v, want %v", c.bands, count, got, c.want)
		}
	}
	for _, c := range []struct {
		bands      Bands
		count, sum int
	}{
		{Bands{32, 32, 3, 32}, 28, 11793007},
		{Bands{64, 64, 4, 32}, 29, 48554628},
		{Bands{512, 512, 3, 32}, 31, 3584464413},
		{Bands{40, 72, 3, 16}, 16, 18533480},
	} {
		index, count := c.bands.Index()
		sum := 0
		for f, b := range index {
			sum += b * (f % 1009)
		}
		if count != c.count || sum != c.sum || c.bands.Parts() != count*c.bands.C {
			t.Errorf("%+v: %d bands, %d parts, sum %d", c.bands, count, c.bands.Parts(), sum)
		}
	}
}

// The mean is alone; a greater radial frequency is in no lower band, and the frequencies of a band differ by no more
// than its width in ln ρ.
func TestBandsAreRadial(t *testing.T) {
	for _, b := range []Bands{{16, 16, 1, 32}, {9, 30, 1, 12}, {64, 48, 1, 20}} {
		index, count := b.Index()
		radius := func(f int) float64 {
			return math.Hypot(float64(f/b.W)/float64(b.H), float64(f%b.W)/float64(b.W))
		}
		low, high := slices.Repeat([]float64{math.Inf(1)}, count), make([]float64, count)
		for f, band := range index {
			low[band], high[band] = min(low[band], radius(f)), max(high[band], radius(f))
		}
		width := math.Log(high[count-1]*float64(max(b.H, b.W))) / float64(b.N-1)
		if high[0] != 0 {
			t.Errorf("%+v: the mean is with ρ %v", b, high[0])
		}
		for i := 1; i < count; i++ {
			if !(low[i] > high[i-1]) || math.Log(high[i]/low[i]) > width+1e-6 {
				t.Errorf("%+v: band %d from ρ %v to %v after %v", b, i, low[i], high[i], high[i-1])
			}
		}
	}
}

// The covariance of a band is the mean of its frequencies', without their means.
func TestMomentsInBands(t *testing.T) {
	bands := Bands{H: 4, W: 4, C: 2, N: 3}
	m := NewFrequencyMoments(4, 4, 2)
	for i := range 5 {
		m.Add(random(uint64(i), 32))
	}
	index, count := bands.Index()
	want, sizes := make([][]float64, count), make([]float64, count)
	cov := mat.NewSymDense(2, nil)
	for f, b := range index {
		m.Covariance(f, cov)
		want[b] = append(want[b], cov.At(0, 0), cov.At(0, 1), cov.At(1, 1))
		sizes[b]++
	}
	pooled := m.InBands(bands)
	if h, w, c := pooled.Dims(); h*w != count || c != 2 || pooled.N() != 5 {
		t.Fatalf("moments of %d×%d×%d", h, w, c)
	}
	near(t, "means", pooled.Mean(), make([]float64, 2*count), 0)
	for b := range count {
		pooled.Covariance(b, cov)
		mean := make([]float64, 3)
		for i, v := range want[b] {
			mean[i%3] += v / sizes[b]
		}
		near(t, "covariance", []float64{cov.At(0, 0), cov.At(0, 1), cov.At(1, 1)}, mean, 1e-12)
	}
}
