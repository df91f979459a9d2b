package schedule

import (
	"math"
	"slices"
)

// Sample is one measurement of an energy density at the noise level Sigma = √g.
type Sample struct {
	Sigma  float64 `json:"sigma"`
	F      float64 `json:"f"`      // E|P(flow + ε)|²/(g(c+g))
	Stderr float64 `json:"stderr"` // standard error of F; 0 where unknown
}

// ResidualSample turns a measured mean squared residual E|P(flow + ε)|² and its
// standard error into a sample of the energy density:
//
//	F = residual/(g (c + g)),  g = σ².
func ResidualSample(sigma, residual, stderr, c float64) Sample {
	g := sigma * sigma
	w := 1 / (g * (c + g))
	return Sample{Sigma: sigma, F: w * residual, Stderr: w * stderr}
}

// Density is the energy density F(g) of one subspace, known from samples: ln F is
// linear in ln g between them. Beyond them F follows its limits for any data with
// finite variance, 1/g below and 1/g³ above. A Density is immutable.
type Density struct {
	samples []Sample
	g       []float64 // variances of the samples
}

// NewDensity returns the density through the samples, which need not be in order:
// at least two different noise levels, F positive, everything finite.
// An *Error's Row is the index of the offending sample.
func NewDensity(samples []Sample) (*Density, error) {
	for i, s := range samples {
		switch {
		case !(s.Sigma > 0) || math.IsInf(s.Sigma, 1):
			return nil, failf(i, "noise level %v; it must be positive and finite", s.Sigma)
		case !(s.F > 0) || math.IsInf(s.F, 1):
			return nil, failf(i, "energy density %v at noise level %v; it must be positive and finite", s.F, s.Sigma)
		case !(s.Stderr >= 0) || math.IsInf(s.Stderr, 1):
			return nil, failf(i, "standard error %v at noise level %v; it must be finite and not negative", s.Stderr, s.Sigma)
		}
	}
	if len(samples) < 2 {
		return nil, failf(-1, "an energy density needs at least two samples, got %d", len(samples))
	}
	d := &Density{samples: slices.Clone(samples)}
	slices.SortFunc(d.samples, func(a, b Sample) int {
		if a.Sigma < b.Sigma {
			return -1
		}
		return 1
	})
	for i, s := range d.samples {
		if i > 0 && s.Sigma == d.samples[i-1].Sigma {
			return nil, failf(-1, "noise level %v is measured twice; merge the two", s.Sigma)
		}
		d.g = append(d.g, s.Sigma*s.Sigma)
	}
	return d, nil
}

// Samples returns a copy of the samples in increasing order of the noise level.
func (d *Density) Samples() []Sample { return slices.Clone(d.samples) }
