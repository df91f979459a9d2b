package gaussian

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// noiseImages returns n images of 4×6 pixels in 2 correlated channels, smooth and off zero.
func noiseImages(n int) [][]float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([][]float64, n)
	for i := range out {
		im := make([]float64, 4*6*2)
		base := rng.NormFloat64()
		for k := range im {
			im[k] = 0.1 + 0.3*base + 0.1*rng.NormFloat64()
			if k%2 == 1 {
				im[k] = 0.5*im[k-1] - 0.2*rng.NormFloat64() + 0.05
			}
		}
		out[i] = im
	}
	return out
}

func measure(t *testing.T, images [][]float64) *Spectrum {
	t.Helper()
	return spectrumOf(t, 4, 6, 2, images)
}

func spectrumOf(t *testing.T, h, w, c int, images [][]float64) *Spectrum {
	t.Helper()
	m := basis.NewFrequencyMoments(h, w, c)
	for _, im := range images {
		m.Add(im)
	}
	s, err := NewSpectrum(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMeasureIsTheCovarianceOfCoefficients compares with coefficients taken one by one against the DCT functions, and
// textbook covariances.
func TestMeasureIsTheCovarianceOfCoefficients(t *testing.T) {
	images := noiseImages(50)
	s := measure(t, images)
	for u := range 4 {
		for v := range 6 {
			coef := mat.NewDense(len(images), 2, nil)
			for i, im := range images {
				for k := range 2 {
					var sum float64
					for y := range 4 {
						for x := range 6 {
							w := math.Cos(math.Pi*(float64(y)+0.5)*float64(u)/4) * math.Cos(math.Pi*(float64(x)+0.5)*float64(v)/6)
							sum += w * im[(y*6+x)*2+k]
						}
					}
					scale := math.Sqrt(2./4) * math.Sqrt(2./6)
					if u == 0 {
						scale /= math.Sqrt2
					}
					if v == 0 {
						scale /= math.Sqrt2
					}
					coef.Set(i, k, scale*sum)
				}
			}
			var cov mat.SymDense
			stat.CovarianceMatrix(&cov, coef, nil)
			share := float64(len(images)-1) / float64(len(images)) // over n, not n − 1
			trace, det := share*(cov.At(0, 0)+cov.At(1, 1)), share*share*mat.Det(&cov)
			root := math.Sqrt(trace*trace/4 - det)
			d := s.Directions[(u*6+v)*2:][:2]
			near(t, "first variance", d[0].Variance, trace/2+root, 1e-10)
			near(t, "second variance", d[1].Variance, trace/2-root, 1e-8)
			m0, m1 := stat.Mean(mat.Col(nil, 0, coef), nil), stat.Mean(mat.Col(nil, 1, coef), nil)
			near(t, "squared mean", d[0].Mean*d[0].Mean+d[1].Mean*d[1].Mean, m0*m0+m1*m1, 1e-9)
		}
	}
}

// TestMeasureKeepsVariance: the transform is orthonormal, so the total variance is that of the pixels, and each band's
// that of its projection.
func TestMeasureKeepsVariance(t *testing.T) {
	images := noiseImages(40)
	s := measure(t, images)
	for _, cuts := range [][]int{nil, {2}, {1, 3}, {1, 2, 5}} {
		b := basis.None(4, 6)
		if cuts != nil {
			var err error
			if b, err = basis.DCTBands(4, 6, cuts...); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Bands(b)
		if err != nil {
			t.Fatal(err)
		}
		want := projectedVariance(t, b, images)
		for j, band := range got {
			if len(band) != 2*b.Dims()[j] {
				t.Errorf("cuts %v: subspace %d has %d directions, the basis %d per channel", cuts, j, len(band), b.Dims()[j])
			}
			var sum float64
			for _, d := range band {
				sum += d.Variance
			}
			near(t, "variance of a band", sum, want[j], 1e-10)
		}
	}
}

// projectedVariance returns the total variance of P_j x over the images.
func projectedVariance(t *testing.T, b *basis.Basis, images [][]float64) []float64 {
	n := float64(len(images))
	sums, squares := make([][]float64, b.J()), make([]float64, b.J())
	dst := make([][]float64, b.J())
	for j := range dst {
		dst[j], sums[j] = make([]float64, 24), make([]float64, 48)
	}
	plane := make([]float64, 24)
	for _, im := range images {
		for k := range 2 {
			for i := range plane {
				plane[i] = im[2*i+k]
			}
			if err := b.Split(-1, plane, dst); err != nil {
				t.Fatal(err)
			}
			for j, p := range dst {
				for i, v := range p {
					sums[j][2*i+k] += v
					squares[j] += v * v
				}
			}
		}
	}
	for j := range squares {
		squares[j] /= n
		for _, v := range sums[j] {
			squares[j] -= v * v / (n * n)
		}
	}
	return squares
}

// TestMeasureTurnsWithTheChannels: an orthogonal mixture of channels changes nothing.
func TestMeasureTurnsWithTheChannels(t *testing.T) {
	images := noiseImages(30)
	want := measure(t, images)
	sin, cos := math.Sincos(0.7)
	for _, im := range images {
		for i := 0; i < len(im); i += 2 {
			im[i], im[i+1] = cos*im[i]-sin*im[i+1], sin*im[i]+cos*im[i+1]
		}
	}
	for i, d := range measure(t, images).Directions {
		near(t, "variance", d.Variance, want.Directions[i].Variance, 1e-9)
		near(t, "mean", d.Mean, want.Directions[i].Mean, 1e-9)
	}
}

func TestSpectrumRefuses(t *testing.T) {
	m := basis.NewFrequencyMoments(1, 2, 1)
	for _, images := range [][][]float64{nil, {{0, 1}, {math.NaN(), 0}}} {
		for _, im := range images {
			m.Add(im)
		}
		_, err := NewSpectrum(m)
		if e := (*solver.Error)(nil); !errors.As(err, &e) || e.Field != "dataset" {
			t.Errorf("%d images: error %v, want one about the data set", m.N(), err)
		}
	}
}
