package gaussian

import (
	"context"
	"math"
	"slices"
)

// search is one run of Optimize.
type search struct {
	ctx         context.Context
	objective   objective // without bands
	tie         float64   // relative, as in Settings
	progress    func(done, total int)
	done, total int
}

// run returns the nodes of each subspace.
func (s *search) run(bands [][]Direction) ([][]float64, error) {
	groups := make([][]group, len(bands))
	s.total = numStarts
	if len(bands) > 1 {
		s.total += len(bands)*(numStarts+1) + 2
	}
	for j, band := range bands {
		groups[j] = grouped(band)
	}
	theta, _ := s.best(grouped(slices.Concat(bands...)))
	if len(bands) > 1 {
		theta = s.together(groups, theta)
	}
	s.objective.bands = groups
	return s.objective.sigma(theta), s.ctx.Err()
}

// best returns the best parameters for some directions alone, and the sum there, from
// all starts and those given.
func (s *search) best(band []group, more ...[]float64) (theta []float64, sum float64) {
	o := s.objective
	o.bands = [][]group{band}
	sum = math.Inf(1)
	for _, sigma := range starts(band, o.sampler.Steps, math.Sqrt(o.T), math.Sqrt(o.g0)) {
		more = append(more, parameters(sigma))
	}
	for _, start := range more {
		if at, got := s.minimize(&o, start); theta == nil || got < sum {
			theta, sum = at, got
		}
	}
	return theta, sum
}

// together returns the parameters of all subspaces, tied.
func (s *search) together(groups [][]group, shared []float64) []float64 {
	var own, same []float64
	var sum float64
	for _, band := range groups {
		theta, got := s.best(band, shared)
		own, same = append(own, theta...), append(same, shared...)
		sum += got
	}
	o := s.objective
	o.bands, o.tie = groups, s.tie*sum
	a, sumA := s.minimize(&o, own)
	b, sumB := s.minimize(&o, same)
	if sumB < sumA {
		return b
	}
	return a
}

func (s *search) minimize(o *objective, start []float64) ([]float64, float64) {
	p := leastSquares{rows: o.rows(), residual: o.residual, stop: func() bool { return s.ctx.Err() != nil }}
	theta, sum := p.minimize(start)
	s.done++
	if s.progress != nil {
		s.progress(s.done, s.total)
	}
	return theta, sum
}
