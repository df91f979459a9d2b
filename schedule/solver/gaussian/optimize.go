package gaussian

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

const (
	maxSteps = 32
	// networkError is the relative error that a network is assumed to make, as in Distance.Noise. It keeps nodes apart
	// whose difference would be extrapolated.
	networkError = 0.01
	// tieShare keeps the nodes of different subspaces together, because networks are best at equal noise levels: a root
	// mean square of 1 between their logarithms costs this share of the objective.
	tieShare = 0.01
)

// Settings of Optimize. The zero value of a field means its default.
type Settings struct {
	// Sampler is the solver, its options and its Steps or NFE; its Grid stays empty.
	Sampler solver.Settings
	T       float64         // end of time and variance there, σ_0 = √T; default schedule.DefaultT
	G0      float64         // variance at t = 0, σ_n = √G0; default schedule.DefaultG0
	Family  schedule.Family // of the schedule
	// Progress, which may be nil, is called after each of the local searches.
	Progress func(done, total int)
}

// Nodes are noise levels chosen for a sampler.
type Nodes struct {
	Sigma [][]float64 // σ_0 > … > σ_n of each subspace, [J][n+1], σ_0 = √T, σ_n = √g_0
	// Schedule has its knots at the nodes, at uniform times: the uniform grid of Sampler.Steps steps is the nodes.
	Schedule *schedule.Schedule
	// Sampler is the sampler on that grid, resolved.
	Sampler solver.Settings
	// Report is its distance to the data's Gaussian.
	Report *Report
}

// Optimize returns the nodes of each subspace of a basis with which a sampler is closest to the data's Gaussian. It
// minimises W2² of Bench plus small terms for a network's errors and for differences between subspaces, over the J
// (n−1) nodes of n steps between the fixed ends.
//
// First all subspaces share their nodes: the best of least squares from several starts. Then each subspace gets its
// own, from the same starts and from the shared nodes. Last they are tied, both from there and from the shared nodes,
// so that more subspaces are no worse than one. The result is deterministic.
//
// Errors are *solver.Error, *schedule.Error, or that of the context.
func Optimize(ctx context.Context, s *Spectrum, b *basis.Basis, set Settings) (*Nodes, error) {
	return optimize(ctx, s, b, set, networkError, tieShare)
}

func optimize(ctx context.Context, s *Spectrum, b *basis.Basis, set Settings, noise, tie float64) (*Nodes, error) {
	bands, err := s.Bands(b)
	if err != nil {
		return nil, err
	}
	o, err := newObjective(s, set, noise)
	if err != nil {
		return nil, err
	}
	sigma, err := (&search{ctx: ctx, objective: o, tie: tie, progress: set.Progress}).run(bands)
	if err != nil {
		return nil, err
	}
	paths := make([]*schedule.Path, len(sigma))
	for j, list := range sigma {
		if paths[j], err = pathThrough(list, o.T, o.g0); err != nil {
			return nil, err
		}
	}
	sch, err := schedule.New(set.Family, nil, [][]*schedule.Path{paths})
	if err != nil {
		return nil, err
	}
	report, err := s.BenchSampler(b, o.sampler, sch)
	return &Nodes{Sigma: sigma, Schedule: sch, Sampler: o.sampler, Report: report}, err
}

// newObjective returns the objective without bands, with checked settings and defaults.
func newObjective(s *Spectrum, set Settings, noise float64) (o objective, err error) {
	o = objective{
		T: cmp.Or(set.T, schedule.DefaultT), g0: cmp.Or(set.G0, schedule.DefaultG0), noise: noise, total: s.Variance(),
	}
	switch {
	case set.Sampler.Grid.Kind != "" && set.Sampler.Grid.Kind != solver.GridSchedule:
		return o, failf("grid", "must be left out if nodes are chosen, got %s", set.Sampler.Grid.Kind)
	case !(o.g0 > 0 && o.T > o.g0) || math.IsInf(o.T, 1):
		return o, failf("T", "must be above g0 and g0 above 0, got T = %v, g0 = %v", o.T, o.g0)
	case !(o.total > 0):
		return o, failf("dataset", "must hold images that differ, got all alike")
	}
	if o.sampler, err = set.Sampler.Resolve(); err != nil {
		return o, err
	}
	if n := o.sampler.Steps; n > maxSteps {
		return o, &solver.Error{
			Field: "steps", Msg: fmt.Sprintf("%d steps; nodes are chosen for at most %d", n, maxSteps),
			TooLarge: true,
		}
	}
	return o, nil
}

// search is one run of Optimize.
type search struct {
	ctx         context.Context
	objective   objective // without bands
	tie         float64   // as a share of the objective
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
		groups[j] = groupDirections(band)
	}
	theta, _ := s.best(groupDirections(slices.Concat(bands...)))
	if len(bands) > 1 {
		theta = s.together(groups, theta)
	}
	s.objective.bands = groups
	return s.objective.sigma(theta), s.ctx.Err()
}

// best returns the best parameters for some directions alone and their sum, from all starts and from more.
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
	var separate, repeated []float64
	var sum float64
	for _, band := range groups {
		theta, got := s.best(band, shared)
		separate, repeated = append(separate, theta...), append(repeated, shared...)
		sum += got
	}
	o := s.objective
	o.bands, o.tie = groups, s.tie*sum
	a, sumA := s.minimize(&o, separate)
	b, sumB := s.minimize(&o, repeated)
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

// numStarts is the number of starts.
const numStarts = 10

// starts returns nodes of n steps to start from, for groups of directions: uniform in ln σ, and by EDM's rule
// (arXiv:2206.00364, table 1) with several exponents ρ, down to several noise levels about the data's own and then to
// σ_n in one step.
func starts(band []group, n int, hi, lo float64) [][]float64 {
	out := [][]float64{levels(make([]float64, n-1), hi, lo)}
	middle := math.Sqrt(band[len(band)/2].Variance)
	for _, rho := range []float64{3, 7, 100} {
		for _, part := range []float64{1. / 64, 1. / 8, 1} {
			last := min(max(part*middle, 2*lo), math.Sqrt(hi*lo))
			sigma := append(schedule.EDMLevels(hi, last, rho, n), lo)
			sigma[0] = hi
			out = append(out, sigma)
		}
	}
	return out
}
