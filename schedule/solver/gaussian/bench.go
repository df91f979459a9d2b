package gaussian

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Report is a sampler's squared 2-Wasserstein distance to the data's Gaussian. All
// its numbers are relative to the data's total variance.
type Report struct {
	Distance
	Bands []Band // [J]; their parts add up to the whole
}

// Distance is a squared 2-Wasserstein distance and what it is made of.
type Distance struct {
	W2 float64 // Spread + Shift
	// Spread is due to wrong variances: the solver's error.
	Spread float64
	// Shift is due to wrong means. From noise alone no solver is without it: sampling
	// starts at mean zero as if the noise had drowned the data's mean, and m²λ/σ_max² of
	// it stays. From the data's own law there is none.
	Shift float64
	// Noise is what errors of a network would add to W2, if its evaluations erred
	// independently, by the posterior's own standard deviation. Errors of a hundredth
	// of that add 1e-4·Noise. It is no part of W2 and tells plans that extrapolate
	// wildly.
	Noise float64
}

// Band is the part of a Report that belongs to one subspace.
type Band struct {
	Distance
	Dims     int         // directions
	Variance float64     // share of the total variance
	Output   []Direction // what the sampler makes of each direction, in the order of Spectrum.Bands
}

// Bench runs a plan of J subspaces on the Gaussian and returns its distance. A basis
// that Spectrum.Bands refuses, a plan for another J and data without variance are an
// *Error.
func (s *Spectrum) Bench(b *basis.Basis, p *solver.Plan) (*Report, error) {
	bands, err := s.Bands(b)
	if err != nil {
		return nil, err
	}
	if len(p.Init) != len(bands) {
		return nil, failf("schedule", "must have the %d subspaces of the basis, got %d", len(bands), len(p.Init))
	}
	if err := s.checkCoordinates(b, p); err != nil {
		return nil, err
	}
	total := s.Variance()
	if !(total > 0) {
		return nil, failf("dataset", "must hold images that differ, got all alike")
	}
	rep := &Report{}
	for j, band := range bands {
		out := Band{Dims: len(band), Output: make([]Direction, len(band))}
		r := newRunner(p, j)
		for i, d := range band {
			if p.Coordinates != nil {
				r.part = i
			}
			deviation, shift := r.outcome(d)
			noise, churn := r.noise(d.Variance)
			deviation = math.Hypot(deviation, math.Sqrt(churn)) // with independent noise
			spread := deviation - math.Sqrt(d.Variance)
			out.add(Distance{Spread: spread * spread / total, Shift: shift * shift / total, Noise: noise / total})
			out.Variance += d.Variance / total
			out.Output[i] = Direction{Mean: d.Mean + shift, Variance: deviation * deviation}
		}
		rep.add(out.Distance)
		rep.Bands = append(rep.Bands, out)
	}
	return rep, nil
}

// checkCoordinates refuses a plan whose own coordinates are not the law's.
func (s *Spectrum) checkCoordinates(b *basis.Basis, p *solver.Plan) error {
	c := p.Coordinates
	if c == nil {
		return nil
	}
	if c.H != s.H || c.W != s.W || c.C != s.C || b.J() != 1 {
		return failf("basis",
			"must be none, and the statistics those of images of %d×%d×%d as the data has, got %d×%d×%d in %d subspaces",
			s.H, s.W, s.C, c.H, c.W, c.C, b.J())
	}
	data, plan := s.axes(), (&Spectrum{H: s.H, W: s.W, C: s.C, Axes: c.Axes[c.Row]}).axes()
	for i, v := range data {
		if math.Abs(math.Abs(v)-math.Abs(plan[i])) > sameAxes {
			return failf("dataset", "must be the one that the schedule's statistics are of: its axes of the channels are others")
		}
	}
	return nil
}

// sameAxes is how far the components of axes may differ.
const sameAxes = 1e-6

// axes returns those of the channels at each frequency.
func (s *Spectrum) axes() []float64 {
	if s.Axes != nil {
		return s.Axes
	}
	axes := make([]float64, s.H*s.W*s.C*s.C)
	for f := range s.H * s.W {
		for k := range s.C {
			axes[(f*s.C+k)*s.C+k] = 1
		}
	}
	return axes
}

func (d *Distance) add(e Distance) {
	d.Spread += e.Spread
	d.Shift += e.Shift
	d.Noise += e.Noise
	d.W2 = d.Spread + d.Shift
}
