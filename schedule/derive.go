package schedule

import (
	"math"
	"slices"
)

// maxKnots bounds the knots of all paths that Expand makes: 21,841 classes of four subspaces have 48 each.
const maxKnots = 1 << 22

// Expand returns s for the rows and subspaces of a richer family, to start its training. Each class gets its own row of
// s, or the shared one. If s has one subspace, each of the j subspaces gets its path. Parameters are kept, energy
// densities are not. It returns an *Error if s has more rows or other subspaces than the family, and a *LabelError for
// a label that s does not know.
func (s *Schedule) Expand(fam Family, labels []int, j int) (*Schedule, error) {
	if s.J() != 1 && s.J() != j {
		return nil, failf(-1, "cannot spread %d subspaces over %d; start from an isotropic schedule", s.J(), j)
	}
	if labels == nil && s.labels != nil {
		return nil, failf(-1, "cannot turn a per-class schedule into a shared one; start from a shared schedule")
	}
	if tau, _ := s.At(0, 0).Knots(); max(len(labels), 1)*j > maxKnots/len(tau) {
		return nil, failf(-1, "cannot have %d classes of %d subspaces with %d knots each; at most %d knots in all",
			max(len(labels), 1), j, len(tau), maxKnots)
	}
	rows := []int{0}
	if labels != nil {
		rows = rows[:0]
		for _, l := range labels {
			r, err := s.Row(l)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	if s.theta != nil {
		theta := make([][]Theta, len(rows))
		for i, r := range rows {
			theta[i] = spread(s.theta[r], j)
		}
		return FromTheta(fam, labels, theta, s.T(), s.g0)
	}
	paths := make([][]*Path, len(rows))
	for i, r := range rows {
		paths[i] = spread(s.paths[r], j)
	}
	return New(fam, labels, paths)
}

func spread[E any](row []E, j int) []E {
	if len(row) == j {
		return row
	}
	return slices.Repeat(row, j)
}

// WithTheta returns s with every path replaced by the one of the same ln g at K = knots uniform times, which has
// parameters. If s has that many parameters already, it returns s. It returns an *Error unless all paths run from one
// variance to g(T) = T, within 1e-9 relative.
func (s *Schedule) WithTheta(knots int) (*Schedule, error) {
	if s.theta != nil && len(s.theta[0][0]) == knots-1 {
		return s, nil
	}
	T, g0 := s.T(), s.paths[0][0].G0()
	if err := checkRange(knots, T, g0); err != nil {
		return nil, err
	}
	theta := make([][]Theta, s.Rows())
	for r, row := range s.paths {
		for j, p := range row {
			if !sameEnd(p.G0(), g0) || !sameEnd(p.GT(), T) {
				return nil, failf(-1,
					"%s, subspace %d runs from g = %v to %v; a schedule that is to be trained runs from one g0 to g(T) = T = %v",
					s.rowName(r), j, p.G0(), p.GT(), T)
			}
			theta[r] = append(theta[r], ThetaFromPath(p, knots, T, g0))
		}
	}
	return FromTheta(s.family, s.labels, theta, T, g0)
}

// Truncated returns the schedule up to a lower noise level, the geometric mean of the subspaces' levels, for sampling
// that starts there. Paths are stretched in time to T = σ², so that uniform steps stay uniform. Parameters and energy
// densities are not kept.
//
// It returns an *Error unless sigma lies above the level at t = 0 and at most 1e-6, relatively, above the one at T.
func (s *Schedule) Truncated(sigma float64) (*Schedule, error) {
	if !(sigma > 0) || math.IsInf(sigma, 1) {
		return nil, failf(-1, "sigma_max must be positive and finite, got %v", sigma)
	}
	T := math.Exp(2 * math.Log(sigma))
	paths := make([][]*Path, s.Rows())
	for r, row := range s.paths {
		end, top := s.TimeOf(r, sigma), s.Sigma(r, s.T())
		if sigma > top*(1+endTolerance*1e3) || end <= 0 {
			return nil, failf(-1, "sigma_max must lie between the noise levels %v and %v of %s, got %v", s.Sigma(r, 0), top,
				s.rowName(r), sigma)
		}
		for _, p := range row {
			g, _ := p.Eval(end)
			if len(row) == 1 {
				g = sigma * sigma
			}
			p, err := p.truncated(end, g, T)
			if err != nil {
				return nil, err
			}
			paths[r] = append(paths[r], p)
		}
	}
	return New(s.family, s.labels, paths)
}

// truncated returns the path up to the time end, where it ends at variance g, stretched to [0, T].
func (p *Path) truncated(end, g, T float64) (*Path, error) {
	var tau, variances []float64
	for k, t := range p.tau {
		if t >= end || p.g[k] >= g {
			break
		}
		tau, variances = append(tau, t/end*T), append(variances, p.g[k])
	}
	return NewPath(append(tau, T), append(variances, g))
}
