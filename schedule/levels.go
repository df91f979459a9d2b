package schedule

import "math"

// EDM's ends of the noise levels (Karras et al., arXiv:2206.00364, table 1), for networks that name none of their own.
const (
	DefaultSigmaMin = edmSigmaMin
	DefaultSigmaMax = 80.0
)

// Range is the noise levels σ that a network was trained on. An end of 0 is not known; the zero Range is that of EDM's
// networks, which take any.
type Range struct{ Min, Max float64 }

// Known reports whether the network has ends of its own.
func (r Range) Known() bool { return r.Min > 0 || r.Max > 0 }

// Ends returns where schedules and grids begin and end by default: at the network's own ends, and at EDM's where there
// are none. An end of EDM's that lies beyond the network's other end gives way.
func (r Range) Ends() (lo, hi float64) {
	lo, hi = r.Min, r.Max
	if hi == 0 {
		hi = max(DefaultSigmaMax, lo*DefaultSigmaMax/DefaultSigmaMin)
		if lo < DefaultSigmaMax {
			hi = DefaultSigmaMax
		}
	}
	if lo == 0 {
		lo = DefaultSigmaMin
		if hi <= lo {
			lo = hi * DefaultSigmaMin / DefaultSigmaMax
		}
	}
	return lo, hi
}

// Within returns the noise levels of both ranges.
func (r Range) Within(other Range) Range {
	r.Min = max(r.Min, other.Min)
	if r.Max == 0 || other.Max > 0 && other.Max < r.Max {
		r.Max = other.Max
	}
	return r
}

// Empty reports whether no noise level lies in the range.
func (r Range) Empty() bool { return r.Max > 0 && r.Min >= r.Max }

// Holds reports whether σ lies in the range, but for rounding.
func (r Range) Holds(sigma float64) bool {
	return sigma >= r.Min*(1-endTolerance*1e3) && (r.Max == 0 || sigma <= r.Max*(1+endTolerance*1e3)) &&
		!math.IsNaN(sigma)
}
