package schedule

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/integrate/quad"
)

// WithEnergy returns the schedule with a measured energy density for every row and
// subspace, f[row][subspace], each as a function of that subspace's own variance.
func (s *Schedule) WithEnergy(f [][]*Density) (*Schedule, error) {
	if len(f) != s.Rows() {
		return nil, failf(-1, "there must be energy densities for the %d rows of the schedule, got %d", s.Rows(), len(f))
	}
	c := *s
	c.energy = nil
	for r, row := range f {
		if len(row) != s.J() || slices.Contains(row, nil) {
			return nil, failf(-1, "there must be energy densities for the %d subspaces of the schedule, got %d in %s", s.J(),
				len(row), s.rowName(r))
		}
		c.energy = append(c.energy, slices.Clone(row))
	}
	return &c, nil
}

// Energy returns the densities [row][subspace], nil where none are stored.
func (s *Schedule) Energy() [][]*Density {
	var out [][]*Density
	for _, row := range s.energy {
		out = append(out, slices.Clone(row))
	}
	return out
}

// speed returns √(Σ_j ġ_j² F_j) of a row at time t.
func (s *Schedule) speed(row int, t float64) float64 {
	var sum float64
	for j, p := range s.paths[row] {
		g, gdot := p.Eval(t)
		sum += gdot * gdot * s.energy[row][j].At(g)
	}
	return math.Sqrt(sum)
}

// kinks returns the times at which a row's speed is not smooth: its knots, and
// where a path passes a sample of its density.
func (s *Schedule) kinks(row int) []float64 {
	out := slices.Clone(s.geo[row].tau)
	for j, p := range s.paths[row] {
		for _, l := range s.energy[row][j].logg {
			if p.logg[0] < l && l < p.logg[len(p.logg)-1] {
				out = append(out, p.Inverse(math.Exp(l)))
			}
		}
	}
	sort.Float64s(out)
	return slices.Compact(out)
}

// GeodesicTimes returns n+1 times from 0 to T at equal steps of a row's path length
//
//	∫ √(Σ_j ġ_j² F_j) dt.
//
// It answers ErrNoEnergy where no density is stored.
func (s *Schedule) GeodesicTimes(row, n int) ([]float64, error) {
	if s.energy == nil {
		return nil, ErrNoEnergy
	}
	length := func(a, b float64) float64 {
		return quad.Fixed(func(t float64) float64 { return s.speed(row, t) }, a, b, 16, quad.Legendre{}, 0)
	}
	at := s.kinks(row)
	total := make([]float64, len(at)) // length up to each kink
	for k := 1; k < len(at); k++ {
		total[k] = total[k-1] + length(at[k-1], at[k])
	}
	times := make([]float64, n+1)
	for i := 1; i < n; i++ {
		want := total[len(total)-1] * float64(i) / float64(n)
		k := min(max(sort.SearchFloat64s(total, want), 1), len(at)-1)
		lo, hi := at[k-1], at[k]
		for lo < hi {
			mid := lo + (hi-lo)/2
			if mid <= lo || mid >= hi {
				break
			}
			if total[k-1]+length(at[k-1], mid) < want {
				lo = mid
			} else {
				hi = mid
			}
		}
		times[i] = hi
	}
	times[n] = s.T()
	return times, nil
}

// Jackknife corrects an estimate of n equal parts of the data for its bias to first
// order, and tells its standard error (Quenouille; Tukey 1958):
//
//	θ = n θ̂ − (n−1) θ̄,   s² = (n−1)/n Σ_i (θ̂_i − θ̄)²,
//
// θ̂ = estimate(−1) being the estimate from all parts, θ̂_i = estimate(i) that without part i, and θ̄
// the mean of the θ̂_i. A root of a noisy mean, as in ∫√F dg, is too small by such a
// bias, and the sum of roots over subspaces by more than the root of the sum. One part
// tells nothing of either: θ̂ and no error.
func Jackknife(n int, estimate func(without int) float64) (value, stderr float64) {
	all := estimate(-1)
	if n < 2 {
		return all, 0
	}
	without := make([]float64, n)
	var mean float64
	for i := range without {
		without[i] = estimate(i)
		mean += without[i] / float64(n)
	}
	var squares float64
	for _, v := range without {
		squares += (v - mean) * (v - mean)
	}
	return float64(n)*all - float64(n-1)*mean, math.Sqrt(float64(n-1) / float64(n) * squares)
}

// LeastEnergy returns (∫√F dg)² between the variances g0 and gT for the density of
// residuals E|P(flow + ε)|² that were measured at the noise levels sigma, increasing.
func LeastEnergy(sigma, residual []float64, c, g0, gT float64) (float64, error) {
	samples := make([]Sample, len(sigma))
	for i, s := range sigma {
		samples[i] = ResidualSample(s, residual[i], 0, c)
	}
	d, err := NewDensity(samples)
	if err != nil {
		return 0, err
	}
	l := d.length(math.Log(g0), math.Log(gT))
	return l * l, nil
}
