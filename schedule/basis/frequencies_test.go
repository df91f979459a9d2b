package basis

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// randomAxes returns orthonormal rows [frequencies, c, c].
func randomAxes(frequencies, c int) (axes []float64) {
	for f := range frequencies {
		axes = append(axes, slices.Concat(orthonormal(uint64(f), c, c)...)...)
	}
	return axes
}

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// The transform is that of the sum in its documentation, its inverse is its transpose, and both work in place.
func TestFrequenciesAreTheTransform(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {3, 5, 2}, {4, 4, 3}} {
		h, w, c := size[0], size[1], size[2]
		for _, axes := range [][]float64{nil, randomAxes(h*w, c)} {
			f := NewFrequencies(h, w, c, axes)
			rows, cols, x := DCTRows(h, h), DCTRows(w, w), random(7, h*w*c)
			want := make([]float64, h*w*c)
			for i := range want {
				u, v, k := i/c/w, i/c%w, i%c
				for at, value := range x {
					a := 0.0
					switch {
					case axes != nil:
						a = axes[((u*w+v)*c+k)*c+at%c]
					case k == at%c:
						a = 1
					}
					want[i] += a * rows[u*h+at/c/w] * cols[v*w+at/c%w] * value
				}
			}
			got := slices.Clone(x)
			f.Forward(got, got)
			near(t, "forward", got, want, 1e-12)
			f.Inverse(got, got)
			near(t, "inverse", got, x, 1e-12)
		}
	}
}

// A DCT function lies in the subspace that FrequencyBands says.
func TestFrequencyBandsAreSubspaces(t *testing.T) {
	for _, cuts := range [][]int{{1}, {2}, {1, 3}, {1, 2, 4}} {
		b := must(t)(DCTBands(5, 6, cuts...))
		bands, ok := b.FrequencyBands()
		if !ok {
			t.Fatal("no bands")
		}
		f := NewFrequencies(5, 6, 1, nil)
		for i, band := range bands {
			x := make([]float64, 30)
			x[i] = 1
			f.Inverse(x, x)
			near(t, "projection", split(t, b, Shared, x)[band], x, 1e-12)
		}
	}
	if _, ok := must(t)(Haar(4, 4, 4)).FrequencyBands(); ok {
		t.Error("haar has bands of frequencies")
	}
	if bands, ok := None(2, 2).FrequencyBands(); !ok || !slices.Equal(bands, []int{0, 0, 0, 0}) {
		t.Errorf("none: %v, %v", bands, ok)
	}
}

// Moments are those of the transformed images, and those of parts merge to those of all.
func TestFrequencyMoments(t *testing.T) {
	const h, w, c, n = 2, 3, 2, 7
	f := NewFrequencies(h, w, c, nil)
	whole, parts := NewFrequencyMoments(h, w, c), []*FrequencyMoments{}
	var images, coefficients [][]float64
	for i := range n {
		x := random(uint64(i), h*w*c)
		whole.Add(x)
		if i%3 == 0 {
			parts = append(parts, NewFrequencyMoments(h, w, c))
		}
		parts[len(parts)-1].Add(x)
		images = append(images, slices.Clone(x))
		f.Forward(x, x)
		coefficients = append(coefficients, x)
	}
	merged := NewFrequencyMoments(h, w, c)
	for _, p := range parts {
		merged.Merge(p)
	}
	merged.Merge(NewFrequencyMoments(h, w, c))
	chosen, odd := NewFrequencyMoments(h, w, c), make([]*FrequencyMoments, n)
	odd[1], odd[3], odd[5] = chosen, chosen, chosen
	AddImages(odd, slices.Concat(images...))
	for _, i := range []int{0, 2, 4, 6} {
		chosen.Add(images[i])
	}
	for name, m := range map[string]*FrequencyMoments{"whole": whole, "merged": merged, "chosen": chosen} {
		if err := m.Check(); m.N() != n || err != nil {
			t.Fatalf("%s: %d images, %v", name, m.N(), err)
		}
		mean, cov := m.Mean(), mat.NewSymDense(c, nil)
		for k := range h * w {
			m.Covariance(k, cov)
			for a := range c {
				var first float64
				for _, x := range coefficients {
					first += x[k*c+a] / n
				}
				near(t, name+" mean", mean[k*c+a:], []float64{first}, 1e-12)
				for b := range c {
					var second float64
					for _, x := range coefficients {
						second += (x[k*c+a] - mean[k*c+a]) * (x[k*c+b] - mean[k*c+b]) / n
					}
					near(t, name+" covariance", []float64{cov.At(a, b)}, []float64{second}, 1e-12)
				}
			}
		}
	}
	whole.Add([]float64{math.NaN(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, values := range []int{1, h*w*c - 1, h*w*c + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d values are taken for images", values)
				}
			}()
			chosen.Add(make([]float64, values))
		}()
	}
	if whole.Check() == nil || NewFrequencyMoments(h, w, c).Check() == nil {
		t.Error("moments of NaN, or of no images, are called usable")
	}
}
