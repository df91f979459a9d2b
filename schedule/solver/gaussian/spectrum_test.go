package gaussian

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

func spectrumOf(t *testing.T, images [][]float64) *Spectrum {
	t.Helper()
	m := basis.NewFrequencyMoments(4, 4, 2)
	for _, im := range images {
		m.Add(im)
	}
	s, err := NewSpectrum(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMeasureTurnsWithTheChannels: an orthogonal mixture of channels changes nothing.
func TestMeasureTurnsWithTheChannels(t *testing.T) {
	of := images(30)
	want := spectrumOf(t, of)
	sin, cos := math.Sincos(0.7)
	for _, im := range of {
		for i := 0; i < len(im); i += 2 {
			im[i], im[i+1] = cos*im[i]-sin*im[i+1], sin*im[i]+cos*im[i+1]
		}
	}
	for i, d := range spectrumOf(t, of).Directions {
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

// TestTrainingLevels: of n values that vary in one direction, by λ, r(σ) = (σ² + λ/n)/(σ² + λ), so that 1 − r is in
// closed form and its moments are found by quadrature.
func TestTrainingLevels(t *testing.T) {
	const λ, n, low, high = 3.0, 8, 1e-2, 1e3
	s := &Spectrum{H: 2, W: 4, C: 1, Directions: make([]Direction, n)}
	s.Directions[2].Variance = λ
	var sigma, ratio []float64
	for i := range 4001 {
		at := low * math.Pow(high/low, float64(i)/4000)
		sigma, ratio = append(sigma, at), append(ratio, s.LossRatio(at, s.Residual(at)))
	}
	near(t, "r(1)", s.LossRatio(1, s.Residual(1)), (1+λ/n)/(1+λ), 1e-12)
	moment := func(k float64) float64 {
		return quad.Fixed(func(l float64) float64 {
			return math.Pow(l-math.Log(low), k) * (λ - λ/n) / (math.Exp(2*l) + λ)
		}, math.Log(low), math.Log(high), 400, quad.Legendre{}, 0)
	}
	mean := moment(1) / moment(0)
	gotMean, gotStd, ok := TrainingLevels(sigma, ratio)
	near(t, "P_mean", gotMean-math.Log(low), mean, 1e-3)
	near(t, "P_std", gotStd, math.Sqrt(moment(2)/moment(0)-mean*mean), 1e-3)
	if !ok {
		t.Error("there is nothing to learn")
	}
}

// TestWhiteDataLeaveNothing: where all directions vary alike the best scalar is the best denoiser.
func TestWhiteDataLeaveNothing(t *testing.T) {
	s := &Spectrum{H: 1, W: 2, C: 1, Directions: []Direction{{Variance: 0.3}, {Mean: 1, Variance: 0.3}}}
	ratio := []float64{s.LossRatio(0.1, s.Residual(0.1)), s.LossRatio(7, s.Residual(7))}
	near(t, "r", ratio[0]*ratio[1], 1, 1e-12)
	if _, _, ok := TrainingLevels([]float64{0.1, 7}, ratio); ok {
		t.Error("there is something to learn")
	}
}
