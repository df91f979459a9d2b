package schedule

import "math"

// Range is the range of noise levels σ that a network was trained on. A bound of 0 is unknown; the zero Range is that
// of EDM's networks, which have no bounds.
type Range struct{ Min, Max float64 }

// Known reports whether the network has a bound of its own.
func (r Range) Known() bool { return r.Min > 0 || r.Max > 0 }

// Ends returns the lowest and highest noise level: the network's bounds, or EDM's where they are unknown. A bound of
// EDM's beyond the network's other bound is moved.
func (r Range) Ends() (lo, hi float64) {
	lo, hi = r.Min, r.Max
	if hi == 0 {
		hi = math.Sqrt(r.T())
	}
	if lo == 0 {
		lo = DefaultSigmaMin
		if hi <= lo {
			lo = hi * DefaultSigmaMin / DefaultSigmaMax
		}
	}
	return lo, hi
}

// T returns the variance at which schedules end by default: the square of the network's highest noise level, or of
// EDM's if that is lower. Above it nothing of images in [−1, 1] is visible, and few steps are better spent below.
func (r Range) T() float64 {
	if r.Max == 0 {
		if r.Min < DefaultSigmaMax {
			return DefaultT
		}
		return r.Min * r.Min * DefaultT
	}
	if r.Max > DefaultSigmaMax && r.Min < DefaultSigmaMax {
		return DefaultT
	}
	return r.Max * r.Max
}

// G0 returns the variance at which schedules begin by default: the square of the network's lowest noise level, or
// DefaultG0 if that level is at most EDM's, below which the flow follows its limit.
func (r Range) G0() float64 {
	if r.Min <= DefaultSigmaMin {
		return DefaultG0
	}
	return r.Min * r.Min
}

// Clamp returns the variance of the range that is closest to g.
func (r Range) Clamp(g float64) float64 {
	if r.Min > DefaultSigmaMin {
		g = max(g, r.Min*r.Min)
	}
	if r.Max > 0 {
		g = min(g, r.Max*r.Max)
	}
	return g
}

// Within returns the intersection of two ranges.
func (r Range) Within(other Range) Range {
	r.Min = max(r.Min, other.Min)
	if r.Max == 0 || other.Max > 0 && other.Max < r.Max {
		r.Max = other.Max
	}
	return r
}

// Empty reports whether no noise level lies in the range.
func (r Range) Empty() bool { return r.Max > 0 && r.Min >= r.Max }

// Holds reports whether the variance g lies in the range, up to rounding.
func (r Range) Holds(g float64) bool { return math.Abs(r.Clamp(g)-g) <= endTolerance*1e3*g }

// Check returns an *Error unless all paths lie in the range.
func (s *Schedule) Check(r Range) error {
	for row, paths := range s.paths {
		for j, p := range paths {
			if !r.Holds(p.G0()) || !r.Holds(p.GT()) {
				lo, hi := r.Ends()
				return failf(-1,
					"noise levels must lie in %.6g … %.6g, those that the network was trained on, got %.6g … %.6g in %s, "+
						"subspace %d", lo, hi, math.Sqrt(p.G0()), math.Sqrt(p.GT()), s.rowName(row), j)
			}
		}
	}
	return nil
}

// zeroShare is the share of a schedule's time that ToZero adds at its beginning.
const zeroShare = 1e-6

// ToZero returns the schedule for sampling down to no noise. Its paths fill all but a 10⁻⁶ of the time; before that
// they rise from DefaultG0 to their first variance. So a sampler's last step ends at t = 0, where x is the image, and
// its other nodes are those of s up to a millionth. Parameters are not kept.
func (s *Schedule) ToZero() (*Schedule, error) {
	paths := make([][]*Path, len(s.paths))
	for r, row := range s.paths {
		for _, p := range row {
			if p.G0() <= DefaultG0 {
				return s, nil
			}
			tau, g := []float64{0}, []float64{DefaultG0}
			for k, t := range p.tau {
				tau, g = append(tau, zeroShare*p.T()+(1-zeroShare)*t), append(g, p.g[k])
			}
			tau[len(tau)-1] = p.T()
			longer, err := NewPath(tau, g)
			if err != nil {
				return nil, err
			}
			paths[r] = append(paths[r], longer)
		}
	}
	out, err := New(s.family, s.labels, paths)
	if err != nil {
		return nil, err
	}
	out.energy, out.provenance, out.sampler = s.energy, s.provenance, s.sampler
	return out, nil
}
