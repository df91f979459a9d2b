package gaussian

import (
	"errors"
	"math"
	"testing"

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
