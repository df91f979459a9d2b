package schedule

import "math"

// Until returns the schedule cut off at lower noise levels, for sampling that starts
// there: at one geometric mean of the subspaces' levels, or at the level of each subspace.
// Paths keep their course and are stretched in time, each to the end T = σ² with σ the
// geometric mean of the levels, so that uniform steps stay uniform. Parameters and
// energy densities are not kept.
//
// Levels must lie above the paths' beginnings and no more than 1e-6, relatively, above
// their ends, and be one or J. Errors are *Error.
func (s *Schedule) Until(sigma []float64) (*Schedule, error) {
	if len(sigma) != 1 && len(sigma) != s.J() {
		return nil, failf(-1, "sigma_max must be one noise level or one for each of %d subspaces, got %d", s.J(), len(sigma))
	}
	var log float64
	for _, v := range sigma {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, failf(-1, "sigma_max must be positive and finite, got %v", v)
		}
		log += math.Log(v) / float64(len(sigma))
	}
	T := math.Exp(2 * log)
	paths := make([][]*Path, s.Rows())
	for r, row := range s.paths {
		for j, p := range row {
			var err error
			level := sigma[0]
			end := s.TimeOf(r, level)
			top := s.Sigma(r, s.T())
			if len(sigma) > 1 {
				level = sigma[j]
				end, top = p.Inverse(level*level), math.Sqrt(p.GT())
			}
			g, _ := p.Eval(end)
			if len(row) == 1 || len(sigma) > 1 {
				g = level * level
			}
			if level > top*(1+endTolerance*1e3) || end <= 0 {
				return nil, failf(-1, "sigma_max must lie between the noise levels %v and %v of %s, subspace %d, got %v",
					math.Sqrt(p.G0()), top, s.rowName(r), j, level)
			}
			if p, err = p.until(end, g, T); err != nil {
				return nil, err
			}
			paths[r] = append(paths[r], p)
		}
	}
	return New(s.family, s.labels, paths)
}

// until returns the path up to a time with its end at variance g, stretched to [0, T].
func (p *Path) until(end, g, T float64) (*Path, error) {
	var tau, variances []float64
	for k, t := range p.tau {
		if t >= end || p.g[k] >= g {
			break
		}
		tau, variances = append(tau, t/end*T), append(variances, p.g[k])
	}
	return NewPath(append(tau, T), append(variances, g))
}
