package schedule

import (
	"math"
	"slices"
)

// Sample is one measurement of an energy density at the noise level Sigma = √g.
type Sample struct {
	Sigma  float64
	F      float64 // E|P(flow + ε)|²/(g(c+g))
	Stderr float64 // standard error of F; 0 where unknown
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
	logg    []float64 // logarithms of the samples' variances
	logf    []float64 // and of their values
}

// NewDensity returns the density through the samples, which need not be in order:
// at least two different noise levels, F positive, everything finite.
// An *Error's Row is the index of the offending sample.
func NewDensity(samples []Sample) (*Density, error) {
	for i, s := range samples {
		switch {
		case !(s.Sigma > 0) || math.IsInf(s.Sigma, 1):
			return nil, failf(i, "sigma must be positive and finite, got %v", s.Sigma)
		case !(s.F > 0) || math.IsInf(s.F, 1):
			return nil, failf(i, "the energy density must be positive and finite, got %v at sigma %v", s.F, s.Sigma)
		case !(s.Stderr >= 0) || math.IsInf(s.Stderr, 1):
			return nil, failf(i, "the standard error must be finite and not negative, got %v at sigma %v", s.Stderr, s.Sigma)
		}
	}
	if len(samples) < 2 {
		return nil, failf(-1, "an energy density must have at least two samples, got %d", len(samples))
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
			return nil, failf(-1, "sigma must be distinct, got %v twice; merge the two", s.Sigma)
		}
		d.logg = append(d.logg, 2*math.Log(s.Sigma))
		d.logf = append(d.logf, math.Log(s.F))
	}
	return d, nil
}

// Samples returns a copy of the samples in increasing order of the noise level.
func (d *Density) Samples() []Sample { return slices.Clone(d.samples) }

// The slopes d ln F/d ln g beyond the samples. As g → 0 the residual tends to the
// dimension and F ~ 1/(c g); as g → ∞ it falls as 1/g and F ~ 1/g³.
const (
	slopeBelow = -1
	slopeAbove = -3
)

// piece returns the power law that holds just above the variance e^l: its exponent,
// the logarithm of its value at e^l, and where it ends.
func (d *Density) piece(l float64) (p, logf, end float64) {
	n := len(d.logg)
	k, found := slices.BinarySearch(d.logg, l) // the first sample at or above l
	if found {
		k++
	}
	switch k {
	case 0:
		return slopeBelow, d.logf[0] + slopeBelow*(l-d.logg[0]), d.logg[0]
	case n:
		return slopeAbove, d.logf[n-1] + slopeAbove*(l-d.logg[n-1]), math.Inf(1)
	}
	p = (d.logf[k] - d.logf[k-1]) / (d.logg[k] - d.logg[k-1])
	return p, d.logf[k-1] + p*(l-d.logg[k-1]), d.logg[k]
}

// At returns F(g).
func (d *Density) At(g float64) float64 {
	_, logf, _ := d.piece(math.Log(g))
	return math.Exp(logf)
}

// expRatio returns (e^z − 1)/z.
func expRatio(z float64) float64 {
	if z == 0 {
		return 1
	}
	return math.Expm1(z) / z
}

// moment returns ∫ F^α g^β dg between the variances e^from and e^to, in closed form
// on each piece: with F = F_a (g/g_a)^p and q = αp + β + 1,
//
//	∫_{g_a}^{g_b} F^α g^β dg = F_a^α g_a^{β+1} ((g_b/g_a)^q − 1)/q.
func (d *Density) moment(alpha, beta, from, to float64) float64 {
	var sum float64
	for l := from; l < to; {
		p, logf, end := d.piece(l)
		width := math.Min(end, to) - l
		q := alpha*p + beta + 1
		sum += math.Exp(alpha*logf+(beta+1)*l) * width * expRatio(q*width)
		l += width
		if end <= to {
			l = end
		}
	}
	return sum
}

// length returns the path length ∫√F dg between the variances e^from and e^to.
func (d *Density) length(from, to float64) float64 { return d.moment(0.5, 0, from, to) }

// travel returns the logarithm of the variance that lies the given length above
// e^from.
func (d *Density) travel(from, length float64) float64 {
	for l := from; ; {
		p, logf, end := d.piece(l)
		pieceLength := d.length(l, end)
		if math.IsInf(end, 1) || pieceLength >= length {
			// length = √F_a g_a (e^{qΔ} − 1)/q, solved for Δ.
			q, unit := 0.5*p+1, length/math.Exp(0.5*logf+l)
			if q == 0 {
				return l + unit
			}
			return l + math.Log1p(q*unit)/q
		}
		length -= pieceLength
		l = end
	}
}

// shifted returns d with ln F of sample i raised by h.
func (d *Density) shifted(i int, h float64) *Density {
	out := *d
	out.logf = slices.Clone(d.logf)
	out.logf[i] += h
	return &out
}
